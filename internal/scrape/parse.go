package scrape

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"
)

const (
	lineBuffer = 64 << 10
	// maxPage bounds what a server that is no TiKV can make us read.
	maxPage = 128 << 20
)

// Parse reads one page of the Prometheus text format. At stays zero. Lines of
// other families, lines that are malformed or longer than 64 KiB, and a last
// line without its newline, which may be cut in the middle of a number, are
// passed over. An error means that the page could not be read to its end; its
// sample must not be used.
func Parse(r io.Reader) (Sample, error) {
	var s Sample
	page := &io.LimitedReader{R: r, N: maxPage}
	lines := bufio.NewReaderSize(page, lineBuffer)
	for tooLong := false; ; {
		line, err := lines.ReadSlice('\n')
		switch {
		case err == nil && !tooLong:
			s.readLine(line[:len(line)-1])
		case err == nil:
			tooLong = false // this was the end of it
		case errors.Is(err, bufio.ErrBufferFull):
			tooLong = true
		case errors.Is(err, io.EOF) && page.N == 0:
			return Sample{}, fmt.Errorf("page has more than %d MiB", maxPage>>20)
		case errors.Is(err, io.EOF):
			return s, nil
		default:
			return Sample{}, err
		}
	}
}

// readLine takes one line: name, optional labels in braces, value, optional
// timestamp.
func (s *Sample) readLine(line []byte) {
	line = bytes.TrimLeft(line, " \t")
	if !interesting(line) {
		return
	}
	end := bytes.IndexAny(line, "{ \t")
	if end < 0 {
		return
	}
	name, rest := line[:end], line[end:]
	switch string(name) {
	case "process_cpu_seconds_total":
		set(&s.ProcessCPU, rest)
	case "process_start_time_seconds":
		var start Value
		if set(&start, rest); start.Known {
			s.StartedAt = unixTime(start.V)
		}
	case "tikv_server_cpu_cores_quota":
		set(&s.Cores, rest)
	case "tikv_backup_softlimit":
		set(&s.SoftLimit, rest)
	case "tikv_backup_thread_pool_size":
		set(&s.PoolSize, rest)
	case "tikv_backup_scan_kv_size_bytes":
		var part Value
		if set(&part, rest); part.Known {
			s.ScannedBytes = known(s.ScannedBytes.V + part.V)
		}
	case "tikv_thread_cpu_seconds_total":
		s.readThread(rest)
	}
}

// interesting drops nearly all lines of a page, comments included, before
// anything is searched in them.
func interesting(line []byte) bool {
	for _, prefix := range [...]string{"tikv_backup_", "tikv_thread_cpu_", "tikv_server_cpu_", "process_"} {
		if len(line) > len(prefix) && string(line[:len(prefix)]) == prefix {
			return true
		}
	}
	return false
}

func (s *Sample) readThread(rest []byte) {
	labels, rest, ok := cutLabels(rest)
	if !ok {
		return
	}
	seconds, ok := number(rest)
	if !ok {
		return
	}
	tid, err := strconv.ParseInt(string(labels.tid), 10, 64)
	if err != nil {
		return
	}
	s.Threads = append(s.Threads, Thread{TID: tid, Role: roleOf(labels.name), Seconds: seconds})
}

// set stores the value of a line whose labels do not matter. A line without a
// usable number leaves v unknown.
func set(v *Value, rest []byte) {
	_, rest, ok := cutLabels(rest)
	if !ok {
		return
	}
	if f, ok := number(rest); ok {
		*v = known(f)
	}
}

// labels are the two that are looked at, as they stand between the quotes:
// neither a thread's name nor its id has anything to unescape.
type labels struct{ name, tid []byte }

// cutLabels takes {…} off the front of b, if it is there.
func cutLabels(b []byte) (l labels, rest []byte, ok bool) {
	b = bytes.TrimLeft(b, " \t")
	if len(b) == 0 || b[0] != '{' {
		return l, b, true
	}
	b = b[1:]
	for {
		b = bytes.TrimLeft(b, " \t,")
		if len(b) > 0 && b[0] == '}' {
			return l, b[1:], true
		}
		eq := bytes.IndexByte(b, '=')
		if eq < 0 {
			return l, nil, false
		}
		key := bytes.TrimRight(b[:eq], " \t")
		value, after, ok := cutQuoted(bytes.TrimLeft(b[eq+1:], " \t"))
		if !ok {
			return l, nil, false
		}
		switch string(key) {
		case "name":
			l.name = value
		case "tid":
			l.tid = value
		}
		b = after
	}
}

// cutQuoted takes a quoted string off the front of b and returns what is
// between the quotes.
func cutQuoted(b []byte) (value, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, false
	}
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return b[1:i], b[i+1:], true
		}
	}
	return nil, nil, false
}

// number reads the value at the front of b; a timestamp may follow.
func number(b []byte) (float64, bool) {
	b = bytes.TrimLeft(b, " \t")
	if end := bytes.IndexAny(b, " \t"); end >= 0 {
		b = b[:end]
	}
	if bytes.ContainsAny(b, "_xXpP") { // Go's number syntax, not Prometheus'
		return 0, false
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// unixTime keeps milliseconds, as much as a float of this size can be trusted
// with.
func unixTime(seconds float64) time.Time {
	if seconds <= 0 || seconds > 1e11 {
		return time.Time{}
	}
	return time.UnixMilli(int64(math.Round(seconds * 1000))).UTC()
}
