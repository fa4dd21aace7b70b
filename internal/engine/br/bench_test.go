package br_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	backuppb "github.com/pingcap/kvproto/pkg/brpb"

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
// into lines on, and reports the largest heap seen, and the speed by processor
// time, which does not depend on what else the machine does.
func BenchmarkParseBRLog(b *testing.B) {
	b.SetBytes(logBytes)
	var peak uint64
	var parsed float64
	before := cpuSeconds(b)
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
		parsed += logBytes / 1e6
	}
	b.ReportMetric(parsed/(cpuSeconds(b)-before), "MB/cpu-s")
	b.ReportMetric(float64(peak)/(1<<20), "peak-heap-MiB")
}

// BenchmarkConfirm reads back the metadata of a backup of 300,000 data files
// (about 30 MB, in one leaf as br writes it), with its SHA-256, and reports the
// largest heap seen.
func BenchmarkConfirm(b *testing.B) {
	dir := b.TempDir()
	leaf := &backuppb.MetaFile{}
	for i := range 300_000 {
		leaf.DataFiles = append(leaf.DataFiles, &backuppb.File{
			Name: fmt.Sprintf("1/%d_6_139c25f8_1693913536827_write.sst", i), Sha256: make([]byte, 32), Size_: 96 << 20})
	}
	raw, err := leaf.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	entry := []*backuppb.File{{Name: "leaf", Sha256: sum[:]}}
	meta := &backuppb.BackupMeta{EndVersion: 1, Version: 1, FileIndex: &backuppb.MetaFile{MetaFiles: entry}, SchemaIndex: &backuppb.MetaFile{}}
	root, err := meta.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	for name, content := range map[string][]byte{"leaf": raw, "backupmeta": root} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(raw)))
	runtime.GC()
	stop, peak := sampleHeap()
	e := br.New(br.Config{Binary: "br"})
	for b.Loop() {
		a, err := e.Confirm(b.Context(), "local://"+dir)
		if err != nil || a.Ranges != 300_000 {
			b.Fatal(a, err)
		}
	}
	close(stop)
	b.ReportMetric(float64(<-peak)/(1<<20), "peak-heap-MiB")
}

// cpuSeconds is the processor time of this process so far, collector included.
func cpuSeconds(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// sampleHeap watches the heap until stop is closed and then sends its peak.
func sampleHeap() (stop chan struct{}, peak chan uint64) {
	stop, peak = make(chan struct{}), make(chan uint64)
	go func() {
		var most uint64
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, heap())
			select {
			case <-stop:
				peak <- most
				return
			case <-tick.C:
			}
		}
	}()
	return stop, peak
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}
