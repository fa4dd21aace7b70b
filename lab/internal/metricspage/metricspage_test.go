package metricspage_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/brctl/brctl/lab/internal/metricspage"
)

var update = flag.Bool("update", false, "rewrite golden files")

var start = time.Date(2026, 3, 1, 1, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return start.Add(d) }

// busyStore is a store in the middle of a backup.
func busyStore(cfg metricspage.Config) *metricspage.Store {
	cfg.Cores = 7.5
	s := metricspage.NewStore(cfg, start)
	s.SetThreads(at(time.Minute), []metricspage.Thread{
		{ID: "grpc-server-0", Name: "grpc-server-0", CPU: 30*time.Second + 999*time.Millisecond},
		{ID: "w0", Name: "bkwkr", CPU: 16 * time.Second},
		{ID: "w1", Name: "bkwkr", CPU: 1234567 * time.Microsecond},
	})
	s.SetBackup(4, 2)
	s.ObserveRange("scan", 15*time.Second)
	s.ObserveRange("save", 9*time.Millisecond)
	s.ObserveRangeSize("write", 40<<20)
	s.AddScan("write", 1000, 96<<20)
	s.AddError("not_leader")
	s.ObserveGRPC("kv_get", 50*time.Microsecond)
	s.ObserveGRPC("kv_get", 300*time.Microsecond)
	s.ObserveGRPC("coprocessor", 200*time.Second)
	return s
}

func render(t *testing.T, w io.WriterTo) []byte {
	t.Helper()
	var b bytes.Buffer
	n, err := w.WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("wrote %d bytes, said %d, error %v", b.Len(), n, err)
	}
	return b.Bytes()
}

func TestPageMatchesGoldenFile(t *testing.T) {
	const golden = "testdata/page.txt"
	got := render(t, busyStore(metricspage.DefaultConfig()))
	parse(t, got)
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("page differs from %s (rewrite it with -update):\n%s", golden, got)
	}
}

func TestPageHasTheTypesThatTiKVDeclares(t *testing.T) {
	p := parse(t, render(t, busyStore(metricspage.DefaultConfig())))
	want := map[string]string{
		"process_cpu_seconds_total":          "counter",
		"process_start_time_seconds":         "gauge",
		"tikv_backup_error_counter":          "counter",
		"tikv_backup_range_duration_seconds": "histogram",
		"tikv_backup_range_size_bytes":       "histogram",
		"tikv_backup_scan_kv_count":          "counter",
		"tikv_backup_scan_kv_size_bytes":     "counter",
		"tikv_backup_softlimit":              "gauge",
		"tikv_backup_thread_pool_size":       "gauge",
		"tikv_grpc_msg_duration_seconds":     "histogram",
		"tikv_server_cpu_cores_quota":        "gauge",
		"tikv_server_info":                   "gauge",
		"tikv_thread_cpu_seconds_total":      "gauge",
	}
	if !maps.Equal(p.types, want) {
		t.Errorf("types = %v, want %v", p.types, want)
	}
	if got := p.samples["process_cpu_seconds_total"]; got != 48 {
		t.Errorf("process CPU = %g, want whole seconds of 48.23", got)
	}
}

func TestFillerReachesTheWantedSize(t *testing.T) {
	for _, size := range []int{16 << 10, 64 << 10, 1 << 20} {
		cfg := metricspage.DefaultConfig()
		cfg.FillTo = size
		s := busyStore(cfg)
		page := render(t, s)
		if len(page) < size || len(page) > size+4<<10 {
			t.Errorf("page of %d bytes, want %d to 4 KiB more", len(page), size)
		}
		p := parse(t, page)
		if !slices.IsSorted(p.order) {
			t.Error("families are not in order of name")
		}
		if again := render(t, s); !bytes.Equal(page, again) {
			t.Error("the same state renders differently")
		}
	}
}

func TestYoungProcessLeavesOutWhatItHasNotCounted(t *testing.T) {
	p := parse(t, render(t, metricspage.NewStore(metricspage.DefaultConfig(), start)))
	for _, name := range []string{"process_cpu_seconds_total", "tikv_backup_error_counter", "tikv_grpc_msg_duration_seconds"} {
		if p.types[name] != "" {
			t.Errorf("%s is on the page", name)
		}
	}
	for _, name := range []string{"tikv_backup_softlimit", "tikv_backup_thread_pool_size"} {
		if v, ok := p.samples[name]; !ok || v != 0 {
			t.Errorf("%s = %g (%t), want the gauge to show 0", name, v, ok)
		}
	}
}

func TestProcessCPUIncludesThreadsThatAreGone(t *testing.T) {
	s := metricspage.NewStore(metricspage.Config{}, start)
	s.SetThreads(at(0), []metricspage.Thread{{ID: "a", CPU: 2 * time.Second}, {ID: "b", CPU: 1500 * time.Millisecond}})
	s.SetThreads(at(1), []metricspage.Thread{{ID: "b", CPU: 2500 * time.Millisecond}})
	s.SetThreads(at(2), []metricspage.Thread{{ID: "c", CPU: time.Second}})
	p := parse(t, render(t, s))
	if got := p.samples["process_cpu_seconds_total"]; got != 5 {
		t.Errorf("process CPU = %g, want 5 of 2 + 2.5 + 1", got)
	}
}

func TestRestartStartsOverUnderNewThreadIDs(t *testing.T) {
	s := busyStore(metricspage.DefaultConfig())
	before := s.Snapshot()
	s.Restart(at(time.Hour))
	s.SetThreads(at(time.Hour), []metricspage.Thread{{ID: "w0", Name: "bkwkr", CPU: time.Second}})
	after := s.Snapshot()
	if after.CPU != time.Second || len(after.GRPCSeconds) != 0 || !after.StartTime.Equal(at(time.Hour)) {
		t.Errorf("after restart: CPU %v, start %v", after.CPU, after.StartTime)
	}
	for _, old := range before.Threads {
		if old.TID >= after.Threads[0].TID {
			t.Errorf("thread id %d after restart, %d before", after.Threads[0].TID, old.TID)
		}
	}
}

func TestWriteErrorComesOut(t *testing.T) {
	fail := errors.New("gone")
	if _, err := busyStore(metricspage.DefaultConfig()).WriteTo(writerFunc(func([]byte) (int, error) { return 0, fail })); !errors.Is(err, fail) {
		t.Errorf("error = %v, want %v", err, fail)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestSnapshotsDoNotChange(t *testing.T) {
	s := busyStore(metricspage.DefaultConfig())
	snap := s.Snapshot()
	before := render(t, &snap)
	s.ObserveGRPC("kv_get", time.Second)
	s.AddError("other")
	s.AddScan("write", 1, 1)
	s.SetThreads(at(2*time.Minute), nil)
	if after := render(t, &snap); !bytes.Equal(before, after) {
		t.Error("an observation changed a snapshot taken before")
	}
}

func TestConcurrentUse(t *testing.T) {
	cfg := metricspage.DefaultConfig()
	cfg.FillTo = 16 << 10
	s := metricspage.NewStore(cfg, start)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 50 {
				s.ObserveGRPC("kv_get", time.Millisecond)
				s.SetThreads(at(time.Duration(j)*time.Second), metricspage.BusinessThreads(time.Duration(j)*time.Second))
				if i == 0 {
					_, _ = s.WriteTo(io.Discard)
				}
			}
		})
	}
	wg.Wait()
	p := parse(t, render(t, s))
	if got := p.samples[`tikv_grpc_msg_duration_seconds_count{type="kv_get"}`]; got != 200 {
		t.Errorf("counted %g requests, want 200", got)
	}
}

func TestBusinessLatencyHasItsMeanAndTail(t *testing.T) {
	s := metricspage.NewStore(metricspage.Config{}, start)
	for range 4000 { // in small parts, as a ticker would
		s.ObserveBusiness("kv_get", 3, 800*time.Microsecond)
	}
	p := parse(t, render(t, s))
	const name = "tikv_grpc_msg_duration_seconds"
	count := p.samples[name+`_count{type="kv_get"}`]
	mean := p.samples[name+`_sum{type="kv_get"}`] / count
	if count != 12000 || mean < 0.000799 || mean > 0.000801 {
		t.Errorf("%g requests with a mean of %g s, want 12000 and 800 µs", count, mean)
	}
	below := func(le string) float64 { return p.samples[name+`_bucket{type="kv_get",le="`+le+`"}`] / count }
	if p50, p95 := below("0.0008"), below("0.0016"); p50 < 0.6 || p50 > 0.65 || p95 < 0.85 || p95 > 0.95 {
		t.Errorf("%.3f within the mean, %.3f within twice the mean", p50, p95)
	}
}

func BenchmarkPage(b *testing.B) {
	for name, size := range map[string]int{"64KiB": 64 << 10, "4MiB": 4 << 20} {
		b.Run(name, func(b *testing.B) {
			cfg := metricspage.DefaultConfig()
			cfg.FillTo = size
			s := busyStore(cfg)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.WriteTo(io.Discard); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
