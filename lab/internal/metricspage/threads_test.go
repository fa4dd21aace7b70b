package metricspage_test

import (
	"testing"
	"time"

	"github.com/brctl/brctl/lab/internal/metricspage"
)

func TestNormalizeThreadName(t *testing.T) {
	for raw, want := range map[string]string{
		"bkwkr": "bkwkr", "bkwkr-v1": "bkwkr_v1", "backup-io": "backup_io",
		"unified-read-po-0": "unified_read_po_0", "raftstore-1-0": "raftstore_1_0",
		"rocksdb:low": "rocksdb:low", "a b": "a_b", "@123": "123", "@@@": "7", "": "7",
	} {
		if got := metricspage.NormalizeThreadName(raw, 7); got != want {
			t.Errorf("%q became %q, want %q", raw, got, want)
		}
	}
}

func TestBusinessThreadsShareTheLoad(t *testing.T) {
	var sum time.Duration
	ids := map[string]bool{}
	for _, th := range metricspage.BusinessThreads(time.Hour) {
		sum += th.CPU
		if ids[th.ID] {
			t.Errorf("thread %s twice", th.ID)
		}
		ids[th.ID] = true
	}
	if (time.Hour - sum).Abs() > time.Microsecond {
		t.Errorf("threads have %v of an hour", sum)
	}
}

// threadStore shows one thread per name; the CPU of each is its age.
type threadStore struct {
	*metricspage.Store
}

func (s threadStore) set(d time.Duration, names ...string) []metricspage.ThreadCPU {
	var threads []metricspage.Thread
	for _, n := range names {
		threads = append(threads, metricspage.Thread{ID: n, Name: "bkwkr", CPU: d})
	}
	s.SetThreads(at(d), threads)
	return s.Snapshot().Threads
}

func TestThreadListLagsBehindAsTiKVsDoes(t *testing.T) {
	s := threadStore{metricspage.NewStore(metricspage.DefaultConfig(), start)}
	s.set(0, "a")
	if got := s.set(10*time.Second, "a", "b"); len(got) != 1 {
		t.Errorf("%d threads before the list is looked at again, want 1", len(got))
	}
	if got := s.set(15*time.Second, "a", "b"); len(got) != 2 {
		t.Errorf("%d threads after 15 s, want 2", len(got))
	}
	s.set(30*time.Second, "a", "b") // nothing new: look again in 30 s, then in 60
	s.set(60*time.Second, "a", "b")
	if got := s.set(119*time.Second, "a", "b", "c"); len(got) != 2 {
		t.Errorf("%d threads while the interval has grown, want 2", len(got))
	}
	if got := s.set(120*time.Second, "a", "b", "c"); len(got) != 3 {
		t.Errorf("%d threads after the long interval, want 3", len(got))
	}
}

func TestDeadThreadKeepsItsLastValueUntilTheListIsLookedAt(t *testing.T) {
	s := threadStore{metricspage.NewStore(metricspage.DefaultConfig(), start)}
	s.set(time.Second, "a", "b")
	if got := s.set(10*time.Second, "a"); len(got) != 2 || got[1].CPU != time.Second {
		t.Errorf("threads %v, want b with its last second", got)
	}
	if got := s.set(20*time.Second, "a"); len(got) != 1 || got[0].CPU != 20*time.Second {
		t.Errorf("threads %v, want a alone", got)
	}
}

func TestReplacedThreadGetsANewID(t *testing.T) {
	s := threadStore{metricspage.NewStore(metricspage.Config{}, start)}
	old := s.set(time.Second, "pool0/0")[0]
	now := s.set(2*time.Second, "pool1/0")[0]
	if old.TID == now.TID || old.Name != now.Name {
		t.Errorf("replaced %+v by %+v, want the same name and another id", old, now)
	}
}

func TestIdleWorkersLeaveAndComeBackAsOthers(t *testing.T) {
	s := metricspage.NewStore(metricspage.Config{IdleWorkerTTL: time.Minute}, start)
	show := func(d, cpu time.Duration) []metricspage.ThreadCPU {
		s.SetThreads(at(d), []metricspage.Thread{
			{ID: "w", Name: "bkwkr-v0", CPU: cpu},
			{ID: "g", Name: "grpc-server-0", CPU: time.Second}, // idle too, but no worker
		})
		return s.Snapshot().Threads
	}
	show(0, 5*time.Second)
	first := show(59*time.Second, 5*time.Second)
	if len(first) != 2 {
		t.Fatalf("threads before the time is up: %v", first)
	}
	if got := show(60*time.Second, 5*time.Second); len(got) != 1 || got[0].Name != "grpc_server_0" {
		t.Errorf("threads after a minute idle: %v", got)
	}
	back := show(90*time.Second, 7*time.Second)
	if len(back) != 2 || back[0].TID == first[0].TID || back[0].CPU != 2*time.Second {
		t.Errorf("threads once it works again: %v, before: %v", back, first)
	}
}
