package runner_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/runner"
)

// crash runs a backup that dies at the named effect.
func crash(t *testing.T, w *world, at string) {
	t.Helper()
	survived, err := w.begin(map[string]fault{at: crashes}).run(request(), newRun("run-1"))
	if survived {
		t.Fatalf("the run outlived its crash at %s: %v", at, err)
	}
	w.hangUp()
	checkWorld(t, w)
}

// statusAfterCrash is the status that a run deserves by what it last wrote down.
func statusAfterCrash(run *runner.Run) policy.RunStatus {
	switch {
	case run.Status.Final():
		return run.Status
	case run.Step == runner.StepVerify:
		return policy.RunSucceeded
	case run.Step == runner.StepEnd || run.Step == runner.StepRestore || run.Step == runner.StepRecord:
		return run.Verdict
	}
	return policy.RunInterrupted
}

func TestAfterACrashAtAnyEffectTheNextLifeUndoesEverything(t *testing.T) {
	for _, e := range happyEffects(t) {
		t.Run("crash at "+e.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				crash(t, w, e.name())
				before := w.saved("run-1")
				cleanUpAndBackUpAgain(t, w)
				after := w.saved("run-1")
				if before == nil {
					if after != nil {
						t.Errorf("a run that was never recorded appeared: %+v", after)
					}
					return
				}
				if want := statusAfterCrash(before); after.Status != want {
					t.Errorf("closed as %s (%s, %s), want %s after step %s", after.Status, after.Reason, after.Message, want, before.Step)
				}
				if after.Status == policy.RunInterrupted && after.Reason != policy.ReasonDied {
					t.Errorf("reason %s, want %s", after.Reason, policy.ReasonDied)
				}
			})
		})
	}
}

func TestAProcessThatOutlivedBrctlIsEndedBeforeSettingsGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		crash(t, w, "topology.stores#2")
		if len(w.alive()) != 1 {
			t.Fatal("the engine did not outlive brctl")
		}
		l := w.begin(nil)
		if _, _, err := l.recover(request()); err != nil {
			t.Fatal(err)
		}
		want := []string{"records.save end", "engine.recover", "journal.child_gone", "records.save restore", "journal.restore"}
		var got []string
		for _, e := range l.effects() {
			if e.op == "journal.put_back" {
				break
			}
			if !onlyLooks(e.op) && e.op != "records.unfinished" {
				got = append(got, strings.TrimSpace(e.op+" "+e.detail))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("effects before the first setting goes back (-want +got):\n%s", diff)
		}
		checkClean(t, w)
	})
}

// TestACrashWhileRecoveringIsRecoveredFrom crashes at every effect of a backup
// and then at two effects of the recovery, spread so that each of them has its
// turn.
func TestACrashWhileRecoveringIsRecoveredFrom(t *testing.T) {
	for i, e := range happyEffects(t) {
		t.Run("crash at "+e.String(), func(t *testing.T) {
			recovery := recoveryEffects(t, e.name())
			for _, second := range []effect{recovery[7*i%len(recovery)], recovery[(11*i+5)%len(recovery)]} {
				t.Run("then at "+second.String(), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t)
						crash(t, w, e.name())
						if survived, _, _ := w.begin(map[string]fault{second.name(): crashes}).recover(request()); survived {
							t.Fatal("the recovery outlived its crash")
						}
						checkWorld(t, w)
						cleanUpAndBackUpAgain(t, w)
					})
				})
			}
		})
	}
}

func recoveryEffects(t *testing.T, crashAt string) []effect {
	t.Helper()
	return effectsOf(t, func(t *testing.T, w *world) *life {
		t.Helper()
		crash(t, w, crashAt)
		l := w.begin(nil)
		if _, _, err := l.recover(request()); err != nil {
			t.Fatal(err)
		}
		return l
	})
}

// TestAnErrorWhileRecoveringIsRecoveredFrom fails every effect of the recovery
// from a crash at each kind of moment.
func TestAnErrorWhileRecoveringIsRecoveredFrom(t *testing.T) {
	moments := map[string]string{
		"between two SETs":                         "settings.set#5",
		"when the engine is in the journal only":   "records.save#7",
		"while the engine works":                   "topology.stores#2",
		"when only the verification is missing":    "engine.confirm#1",
		"between two settings that were put back":  "journal.put_back#4",
		"after the last record, lease still held":  "lease.release#1",
		"when the end is decided but not recorded": "records.save#14",
	}
	for moment, at := range moments {
		t.Run(moment, func(t *testing.T) {
			for _, e := range recoveryEffects(t, at) {
				if !canFail(e) {
					continue
				}
				t.Run("error at "+e.String(), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t)
						crash(t, w, at)
						if survived, _, _ := w.begin(map[string]fault{e.name(): fails}).recover(request()); !survived {
							t.Fatal("the recovery ended without returning")
						}
						checkWorld(t, w)
						cleanUpAndBackUpAgain(t, w)
					})
				})
			}
		})
	}
}

func TestABackupOverAPendingRestoreKeepsTheFirstOldValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		crash(t, w, "engine.start#1")
		w.at("host2:20160").down = true
		w.do(func() { w.leaseOf = "" })
		_, warnings, err := w.begin(nil).recover(request())
		if err != nil {
			t.Fatal(err)
		}
		if !contains(warnings, "host2:20160 backup.num-threads may still be 2, was 6: connection refused; brctl settings restore puts it back") {
			t.Errorf("warnings %q", warnings)
		}
		w.at("host2:20160").down = false
		_, run := backUp(t, w, "run-2", nil)
		if run.Status != policy.RunSucceeded {
			t.Errorf("got %s: %s", run.Status, run.Message)
		}
		checkClean(t, w)
	})
}

func TestUndoingNeedsNoRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		crash(t, w, "topology.stores#2")
		l := w.begin(nil)
		var warnings []string
		l.live(func() { warnings = runner.Undo(t.Context(), l.deps(), request()) })
		if len(warnings) != 1 || warnings[0] != "12 of 12 settings of an earlier run put back" {
			t.Errorf("told %q, want what was put back and nothing else", warnings)
		}
		for _, e := range l.effects() {
			if strings.HasPrefix(e.op, "records.") {
				t.Errorf("%s happened", e)
			}
		}
		if len(w.pending) > 0 || len(w.alive()) > 0 {
			t.Errorf("left: %d settings, %d engines", len(w.pending), len(w.alive()))
		}
		cleanUpAndBackUpAgain(t, w)
	})
}

func TestARecoveryGivesUpAfterItsTimeAndLeavesTheRestToTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		crash(t, w, "settings.set#12")
		for _, s := range w.stores {
			s.down = true
		}
		if survived, _, err := w.begin(nil).recover(request()); !survived || err != nil {
			t.Fatalf("survived %t, %v", survived, err)
		}
		if len(w.pending) != 12 {
			t.Errorf("%d settings owed, want all 12", len(w.pending))
		}
		if run := w.saved("run-1"); run.Status != policy.RunInterrupted {
			t.Errorf("the run is %s although only its settings are left", run.Status)
		}
	})
}
