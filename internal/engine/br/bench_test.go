package br_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/brctl/brctl/internal/engine/br"
	"github.com/brctl/brctl/internal/proc"
)

// logBytes is the size of the log that the benchmark parses: 1 GB.
const logBytes = 1_000_000_000

// logReader produces a log of br without holding it: per thousand lines, about
// what br 8.5 writes in a busy hour with a few failing stores.
type logReader struct {
	left  int64
	block string
	pos   int
}

func newLogReader(size int64) *logReader {
	const info = `[2026/11/30 20:34:15.999 +00:00] [INFO] [client.go:355] ["backup range completed"] ["start-key"=7480000000000000FF665F728000000000FF0003E80000000000FA] ["end-key"=7480000000000000FF665F728000000000FF0007D00000000000FA] [take=1.234s]` + "\n"
	const warn = `[2026/11/30 20:34:15.999 +00:00] [WARN] [error_handling.go:130] ["occur internal TiKV error, will retry"] [error="error happen in store %d at tikv-0.example:20160: put object timeout \"x\""] [store=%d]` + "\n"
	const progress = `[2026/11/30 20:34:15.999 +00:00] [INFO] [progress.go:176] [progress] [step="Full Backup"] [progress=%d.25%%] [count="%d / 160"] [speed="1 p/s"] [elapsed=2m0s] [remaining=3m]` + "\n"
	const round = `[2026/11/30 20:34:15.999 +00:00] [INFO] [client.go:220] ["backup ranges"] [round=%d] [incomplete-ranges=%d]` + "\n"
	var b strings.Builder
	for i := range 1000 {
		switch {
		case i%50 == 7:
			fmt.Fprintf(&b, warn, i, i)
		case i%200 == 9:
			fmt.Fprintf(&b, progress, i%100, i)
		case i%100 == 11:
			fmt.Fprintf(&b, round, i, 1000-i)
		default:
			b.WriteString(info)
		}
	}
	return &logReader{left: size, block: b.String()}
}

func (r *logReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(int64(len(p)), r.left)], r.block[r.pos:])
	r.pos = (r.pos + n) % len(r.block)
	r.left -= int64(n)
	return n, nil
}

// BenchmarkParseBRLog parses 1 GB of log as an attempt does, from the splitting
// into lines on, and reports the largest heap seen.
func BenchmarkParseBRLog(b *testing.B) {
	b.SetBytes(logBytes)
	var peak uint64
	for b.Loop() {
		p := br.NewParser(nil)
		lines := proc.NewLineSplitter(0, func(line []byte) { p.Line(br.FromLog, line) })
		r := newLogReader(logBytes)
		buf := make([]byte, 32<<10)
		for chunk := 0; ; chunk++ {
			n, err := r.Read(buf)
			if err != nil {
				break
			}
			_, _ = lines.Write(buf[:n])
			if chunk%1000 == 0 {
				peak = max(peak, heap())
			}
		}
		if p.Report().Round == 0 {
			b.Fatal("nothing was parsed")
		}
	}
	b.ReportMetric(float64(peak)/(1<<20), "peak-heap-MiB")
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}
