package runner_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/runner"
)

// inWorld runs one backup in a world that prepare has changed.
func inWorld(t *testing.T, prepare func(w *world)) (w *world, l *life, run *runner.Run) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t)
		prepare(w)
		l, run = backUp(t, w, "run-1", nil)
	})
	return w, l, run
}

// statusAt returns the last status that was shown d after the engine started.
func (l *life) statusAt(d time.Duration) runner.Status {
	var out runner.Status
	for _, s := range l.statuses {
		if s.Run.EngineStartedAt.IsZero() || s.Hosts == nil || s.At.Sub(s.Run.EngineStartedAt) > d {
			continue
		}
		out = s.Status
	}
	return out
}

func TestProgressBecomesRateAndTimeLeft(t *testing.T) {
	_, l, run := inWorld(t, func(w *world) {
		w.script = append(tells(), progress(time.Second, 0.04), progress(8*time.Second, 0.2), progress(30*time.Second, 1))
	})
	total := 3 * 1024.0 * 1024 / 3 // MB of source data: one of three replicas
	for _, tt := range []struct {
		at   time.Duration
		rate float64
		eta  time.Duration
	}{
		{1 * time.Second, 0, 0},                                // no progress yet
		{2 * time.Second, total * 0.04 / 2, 0},                 // too early for a time
		{10 * time.Second, total * 0.2 / 10, 40 * time.Second}, // a fifth in 10 s
		{40 * time.Second, total / 40, 0},                      // done
	} {
		got := l.statusAt(tt.at)
		if math.Abs(got.Rate-tt.rate) > tt.rate*1e-3 || got.ETA.Round(time.Millisecond) != tt.eta {
			t.Errorf("after %s: %.1f MB/s, %s left, want %.1f MB/s, %s", tt.at, got.Rate, got.ETA, tt.rate, tt.eta)
		}
	}
	started := run.EngineStartedAt.Sub(backupTS().Time())
	if got := l.statusAt(10 * time.Second).GCHold; got != started+10*time.Second {
		t.Errorf("GC hold %s, want %s: since BackupTS", got, started+10*time.Second)
	}
}

func TestTheTiKVsOfAHostAreAddedUp(t *testing.T) {
	_, l, _ := inWorld(t, func(w *world) {
		w.cluster.Hosts[1].Cores = 32
		w.store(4).StatusAddress = ""
	})
	want := []runner.HostStatus{
		{Host: "host1", Threads: 4, Known: true, CPUKnown: true, BackupCPU: 4, TotalCPU: 4 + 2*3, Cores: 16},
		{Host: "host2", Threads: 2, Known: true, CPUKnown: true, BackupCPU: 2, TotalCPU: 2 + 3, Cores: 32},
	}
	if diff := cmp.Diff(want, l.statusAt(10*time.Second).Hosts, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	if got := l.statusAt(time.Second).Hosts[0].BackupCPU; got != 0 {
		t.Errorf("%v cores of backup after one look, want 0: it takes two", got)
	}
}

func TestAHostThatCannotBeReadIsUnknownAndNotZero(t *testing.T) {
	_, l, _ := inWorld(t, func(w *world) {
		w.store(3).StatusAddress, w.store(4).StatusAddress = "", ""
	})
	got := l.statusAt(10 * time.Second).Hosts
	if len(got) != 2 || !got[0].Known || got[1].Known {
		t.Errorf("hosts %+v, want host1 known and host2 not", got)
	}
}

func TestCPUOfAProcessThatEndedIsNotCountedForItsSuccessor(t *testing.T) {
	_, l, _ := inWorld(t, func(w *world) {
		w.script = append(tells(), then(0, func() {
			w.stores[1].restart(nil)
			w.store(1).StartedAt = w.stores[1].StartedAt
		}), wait(12*time.Second))
	})
	if got := l.statusAt(5 * time.Second).Hosts[0].BackupCPU; math.Abs(got-2) > 1e-6 {
		t.Errorf("%v cores of backup on host1, want the 2 of the TiKV that did not start anew", got)
	}
}

func TestWhilePDDoesNotAnswerTheHostsOfTheLastLookAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l, _ := backUp(t, w, "run-1", map[string]fault{
			"topology.stores#1": fails, "topology.stores#2": fails, "topology.stores#3": fails, "topology.stores#4": fails,
		})
		for _, d := range []time.Duration{time.Second, 10 * time.Second} {
			if got := l.statusAt(d).Hosts; len(got) != 2 || got[0].Threads != 4 {
				t.Errorf("hosts after %s: %+v", d, got)
			}
		}
	})
}

// amid changes the world while the engine works: 5 s after its start, of 17 s.
func amid(w *world, change func()) {
	w.script = append(tells(), then(4*time.Second, change), wait(12*time.Second))
}

func TestATiKVThatStartsAnewIsSetAgainAndKeepsItsFirstOldValue(t *testing.T) {
	w, l, run := inWorld(t, func(w *world) {
		amid(w, func() {
			s := w.stores[1]
			s.restart(map[string]string{policy.ItemNumThreads: "6"}) // a reload brought another value
			w.store(1).StartedAt = s.StartedAt
		})
	})
	checkClean(t, w)
	if got := setsOf(l, "host1:20160"); len(got) != 6 {
		t.Errorf("sets %q, want each setting twice", got)
	}
	if got := run.Settings[0]; got.Old != "8" || got.Restored != runner.Restored {
		t.Errorf("%+v, want the old value 8", got)
	}
	if run.Status != policy.RunSucceeded {
		t.Errorf("got %s: %s", run.Status, run.Message)
	}
}

func TestATiKVThatJoinsIsSetAndPutBackToo(t *testing.T) {
	w, l, run := inWorld(t, func(w *world) {
		joined := policy.Store{ID: 5, Address: "host3:20160", StatusAddress: "host3:20180", Host: "host3", State: policy.StoreUp, StartedAt: time.Now()}
		amid(w, func() {
			w.addStore(joined, map[string]string{policy.ItemNumThreads: "7", policy.ItemBatchSize: "8", policy.ItemRefreshInterval: "60s"})
			w.cluster.Stores = append(w.cluster.Stores, joined)
		})
	})
	checkClean(t, w)
	want := []string{"host3:20160 backup.num-threads = 2", "host3:20160 backup.batch-size = 1", "host3:20160 backup.auto-tune-refresh-interval = 10s"}
	if diff := cmp.Diff(want, setsOf(l, "host3:20160")); diff != "" {
		t.Errorf("sets of the new TiKV (-want +got):\n%s", diff)
	}
	if len(run.Settings) != 15 {
		t.Errorf("%d settings in the run, want 15", len(run.Settings))
	}
}

func TestASilentTiKVIsSetWhenItComesBack(t *testing.T) {
	w, l, _ := inWorld(t, func(w *world) {
		w.store(2).Silent, w.stores[2].down = true, true
		amid(w, func() { w.store(2).Silent, w.stores[2].down = false, false })
	})
	checkClean(t, w)
	if got := setsOf(l, "host1:20161"); len(got) != 3 {
		t.Errorf("sets %q, want its three settings once", got)
	}
}

func TestASmallTiKVIsSetAgainWithinItsOwnCores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.store(1).Cores = 3
		amid(w, func() { w.store(1).StartedAt = time.Now() })
		req := request()
		req.Options = policy.Options{NumThreads: new(4)}
		l, run := w.begin(nil), newRun("run-1")
		_, err := l.run(req, run)
		checkEnded(t, l, run, err)
		checkClean(t, w)
		want := []string{"host1:20160 backup.num-threads = 3", "host1:20160 backup.num-threads = 3"}
		if diff := cmp.Diff(want, setsOf(l, "host1:20160")); diff != "" {
			t.Errorf("sets (-want +got):\n%s", diff)
		}
	})
}

func TestASetAgainThatIsRefusedIsTriedAtTheNextLook(t *testing.T) {
	w, l, run := inWorld(t, func(w *world) {
		amid(w, func() {
			w.store(1).StartedAt = time.Now()
			w.stores[1].settings[policy.ItemNumThreads] = "8"
			w.stores[1].sets = []policy.SetState{policy.SetRefused}
		})
	})
	checkClean(t, w)
	if got := setsOf(l, "host1:20160"); len(got) != 9 {
		t.Errorf("%d sets, want 3 at first, 3 of which one is refused, 3 again", len(got))
	}
	if run.Status != policy.RunSucceeded {
		t.Errorf("got %s: %s", run.Status, run.Message)
	}
}

func setsOf(l *life, instance string) []string {
	var out []string
	for _, e := range l.effects() {
		if e.op == "settings.set" && len(e.detail) > len(instance) && e.detail[:len(instance)] == instance {
			out = append(out, e.detail)
		}
	}
	return out
}

func TestOnceBrIsBeingStoppedNothingIsSetAnyMore(t *testing.T) {
	tests := map[string]struct {
		happens func(l *life) error // at a look, while br works
		want    policy.RunReason
	}{
		"for a lost lease": {func(l *life) error { l.dropLease(); return nil }, policy.ReasonLeaseLost},
		"for GC": {func(l *life) error {
			l.do(func() { l.gc = backupTS() })
			return nil
		}, policy.ReasonGC},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				restart := func() { w.do(func() { w.store(1).StartedAt = time.Now() }) }
				l := w.begin(map[string]fault{
					"topology.stores#3": tt.happens,
					"attempt.stop#1": func(*life) error {
						time.AfterFunc(stopGrace/4, restart)
						return nil
					},
				})
				req, run := request(), newRun("run-1")
				req.MonitorEvery = stopGrace / 2
				_, err := l.run(req, run)
				checkEnded(t, l, run, err)
				checkClean(t, w)
				if got := setsOf(l, "host1:20160"); len(got) != 3 {
					t.Errorf("sets %q, want those before br started only", got)
				}
				if run.Reason != tt.want {
					t.Errorf("got %s %s: %s", run.Status, run.Reason, run.Message)
				}
			})
		})
	}
}

func TestALookThatFindsTheLeaseGoneSetsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		amid(w, func() { w.store(1).StartedAt = time.Now() })
		// Check is the first to see the loss; Lost would be closed a moment later.
		l, run := w.begin(map[string]fault{"lease.check#3": fails}), newRun("run-1")
		_, err := l.run(request(), run)
		checkEnded(t, l, run, err)
		checkClean(t, w)
		if events := kinds(w.events[run.ID]); !slices.Contains(events, "set_again_failed") {
			t.Errorf("events %q, want a set_again that failed", events)
		}
		if got := setsOf(l, "host1:20160"); len(got) != 6 || run.Status != policy.RunSucceeded {
			t.Errorf("%s after %d sets, want success and the sets of the next look", run.Status, len(got))
		}
	})
}

func TestABackupThatGCHasPassedIsStopped(t *testing.T) {
	tests := map[string]struct {
		gc    func() policy.TS
		fault fault
		want  policy.RunReason
	}{
		"GC is behind":                          {func() policy.TS { return backupTS() - 1 }, nil, ""},
		"GC never ran":                          {func() policy.TS { return 0 }, nil, ""},
		"GC has reached BackupTS":               {backupTS, nil, policy.ReasonGC},
		"GC is past BackupTS":                   {func() policy.TS { return policy.TSFromTime(time.Now()) }, nil, policy.ReasonGC},
		"PD prints a safepoint later than now":  {func() policy.TS { return policy.TSFromTime(time.Now().Add(2 * time.Minute)) }, nil, ""},
		"PD prints the largest number there is": {func() policy.TS { return policy.NoLimitTS }, nil, ""},
		"the safepoint cannot be read":          {backupTS, func(*life) error { return errors.New("no leader") }, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				amid(w, func() { w.gc = tt.gc() })
				faults := map[string]fault{}
				if tt.fault != nil {
					for n := range 10 {
						faults[effect{op: "safepoints.read", n: n}.name()] = tt.fault
					}
				}
				_, run := backUp(t, w, "run-1", faults)
				checkClean(t, w)
				if run.Reason != tt.want {
					t.Errorf("got %s %q: %s, want %q", run.Status, run.Reason, run.Message, tt.want)
				}
				stopped := contains(w.done(), "attempt.stop")
				if stopped != (tt.want != "") || stopped && !contains([]string{run.Message}, "has reached BackupTS "+backupTS().String()) {
					t.Errorf("br stopped: %t, message %q", stopped, run.Message)
				}
			})
		})
	}
}
