package proc

import "bytes"

// DefaultMaxLine is how many bytes of one line are kept when nothing else is
// asked. br has been seen to print one line of several megabytes.
const DefaultMaxLine = 64 << 10

// LineSplitter is an io.Writer that cuts what is written to it into lines and
// hands each to a function. '\n' and '\r' both end a line, so that every update
// of a progress bar is one; empty lines are left out. Of a line longer than the
// limit only its first bytes are handed on: memory stays bounded whatever is
// written. Write never fails.
type LineSplitter struct {
	max     int
	emit    func(line []byte)
	partial []byte // start of a line whose end has not been seen, at most max bytes
}

// NewLineSplitter returns a splitter that keeps at most maxLine bytes of a line
// (DefaultMaxLine when that is 0 or less). The slice given to emit is valid
// during the call only.
func NewLineSplitter(maxLine int, emit func(line []byte)) *LineSplitter {
	if maxLine <= 0 {
		maxLine = DefaultMaxLine
	}
	return &LineSplitter{max: maxLine, emit: emit}
}

// Write cuts p into lines. A last line without its end waits for the next
// Write or for Flush.
func (s *LineSplitter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		end := lineEnd(p)
		if end < 0 {
			s.keep(p)
			break
		}
		s.line(p[:end])
		p = p[end+1:]
	}
	return n, nil
}

// Flush hands on a last line that has no end.
func (s *LineSplitter) Flush() { s.line(nil) }

// line completes the current line with rest and emits it.
func (s *LineSplitter) line(rest []byte) {
	if len(s.partial) > 0 {
		s.keep(rest)
		rest = s.partial
		s.partial = s.partial[:0]
	}
	if len(rest) > 0 {
		s.emit(rest[:min(len(rest), s.max)])
	}
}

// keep appends to the current line what still fits.
func (s *LineSplitter) keep(p []byte) {
	s.partial = append(s.partial, p[:min(len(p), s.max-len(s.partial))]...)
}

// lineEnd returns the index of the first '\n' or '\r', or -1. A '\r' is looked
// for only inside the line that '\n' ends: both searches are vectorised, which
// a search for either byte is not.
func lineEnd(p []byte) int {
	end := bytes.IndexByte(p, '\n')
	if end >= 0 {
		p = p[:end]
	}
	if cr := bytes.IndexByte(p, '\r'); cr >= 0 {
		return cr
	}
	return end
}

// tail keeps the last lines it was given.
type tail struct {
	lines []string
	max   int
}

func (t *tail) add(line string) {
	if t.max <= 0 {
		return
	}
	if len(t.lines) == t.max {
		copy(t.lines, t.lines[1:])
		t.lines = t.lines[:t.max-1]
	}
	t.lines = append(t.lines, line)
}
