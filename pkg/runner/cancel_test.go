package runner_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/runner"
)

// The moments of a backup in newWorld, counted from its first check.
const (
	inProbe  = time.Second             // the preflight watches threads for 2 s
	inSettle = 3500 * time.Millisecond // 3 s until the thread limit is applied
	inBackup = 10 * time.Second        // br started after 5 s and takes 16 s
	started  = 5 * time.Second
)

func TestAStopEndsTheWaitThatItMeetsAndThenUndoes(t *testing.T) {
	tests := map[string]struct {
		at, ends time.Duration
		stops    bool // br has to be stopped
	}{
		"in the probe for other backups":   {inProbe, inProbe, false},
		"while the thread limit settles":   {inSettle, inSettle, false},
		"while br works":                   {inBackup, inBackup + stopGrace, true},
		"a millisecond after br started":   {started + time.Millisecond, started + time.Millisecond + stopGrace, true},
		"when br has said that it is done": {started + 16*time.Second - time.Millisecond, started + 16*time.Second - time.Millisecond + stopGrace, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				l, run := w.begin(nil), newRun("run-1")
				l.later(tt.at, func() { l.cancel(runner.ErrStoppedByOperator) })
				begin := time.Now()
				_, err := l.run(request(), run)
				checkEnded(t, l, run, err)
				checkClean(t, w)
				if run.Status != policy.RunCancelled || run.Reason != policy.ReasonOperator {
					t.Errorf("got %s %s: %s", run.Status, run.Reason, run.Message)
				}
				if got := time.Since(begin); got != tt.ends {
					t.Errorf("ended after %s, want %s", got, tt.ends)
				}
				if got := contains(w.done(), "attempt.stop"); got != tt.stops {
					t.Errorf("br was stopped: %t, want %t", got, tt.stops)
				}
				if tt.stops && !slices.Contains(kinds(w.events[run.ID]), "stopping") {
					t.Errorf("events %q do not tell that br was stopped", kinds(w.events[run.ID]))
				}
				for _, warning := range run.Warnings {
					if contains([]string{warning}, context.Canceled.Error()) {
						t.Errorf("the stop shows as a warning: %s", warning)
					}
				}
			})
		})
	}
}

func TestASecondStopDoesNotSkipTheRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l, run := w.begin(map[string]fault{"attempt.stop#1": func(l *life) error {
			l.do(func() { l.at("host1:20160").down = true }) // the restore has to wait
			time.AfterFunc(100*time.Millisecond, func() { l.cancel(errors.New("second")) })
			time.AfterFunc(stopGrace+3*time.Second, func() { l.do(func() { l.at("host1:20160").down = false }) })
			return nil
		}}), newRun("run-1")
		l.later(inBackup, func() { l.cancel(runner.ErrStoppedByOperator) })
		begin := time.Now()
		_, err := l.run(request(), run)
		checkEnded(t, l, run, err)
		checkClean(t, w)
		if run.Status != policy.RunCancelled {
			t.Errorf("got %s: %s", run.Status, run.Message)
		}
		if got, want := time.Since(begin), inBackup+stopGrace+3*time.Second; got < want {
			t.Errorf("returned after %s, before the restore could end at %s", got, want)
		}
	})
}

func TestARunThatTakesTooLongIsStoppedAndStillUndoes(t *testing.T) {
	for name, limit := range map[string]time.Duration{"in the probe": inProbe, "while it settles": inSettle, "while br works": inBackup} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				req := request()
				req.MaxDuration = limit
				l, run := w.begin(nil), newRun("run-1")
				_, err := l.run(req, run)
				checkEnded(t, l, run, err)
				checkClean(t, w)
				if run.Status != policy.RunFailed || run.Reason != policy.ReasonDeadline || run.Message != runner.ErrMaxDuration.Error() {
					t.Errorf("got %s %s: %s", run.Status, run.Reason, run.Message)
				}
			})
		})
	}
}

func TestTheTimeOfTheRestoreIsLimitedAndItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.script = append(tells(), then(time.Second, func() { w.at("host1:20160").down = true }))
		req := request()
		req.MaxDuration = 3 * started
		l, run := w.begin(nil), newRun("run-1")
		begin := time.Now()
		_, err := l.run(req, run)
		checkEnded(t, l, run, err)
		if got, want := time.Since(begin), started+2*time.Second+undoTimeout; got != want {
			t.Errorf("returned after %s, want %s: br and then the restore's own limit", got, want)
		}
		if run.Status != policy.RunSucceeded || len(w.pending) != 3 {
			t.Errorf("got %s (%s) and %d settings owed, want a good backup and 3", run.Status, run.Message, len(w.pending))
		}
	})
}

func TestALostLeaseEndsTheWaitForTheThreadLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l, run := w.begin(nil), newRun("run-1")
		l.later(inSettle, l.dropLease)
		begin := time.Now()
		_, err := l.run(request(), run)
		checkEnded(t, l, run, err)
		checkClean(t, w)
		if got := time.Since(begin); got != inSettle || run.Reason != policy.ReasonLeaseLost {
			t.Errorf("ended after %s as %s (%s), want %s and a lost lease", got, run.Reason, run.Message, inSettle)
		}
	})
}

// TestTheFirstCauseIsKept stops a run for two reasons.
func TestTheFirstCauseIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l, run := w.begin(nil), newRun("run-1")
		l.later(inBackup, l.dropLease)
		l.later(inBackup+time.Second, func() { l.cancel(errors.New("shutting down")) })
		_, err := l.run(request(), run)
		checkEnded(t, l, run, err)
		checkClean(t, w)
		if run.Status != policy.RunFailed || run.Reason != policy.ReasonLeaseLost {
			t.Errorf("got %s %s: %s", run.Status, run.Reason, run.Message)
		}
	})
}

// Settings that another host's run may have on top of ours are left to the
// journal.
func TestSettingsAreNotPutBackUnderAnotherHostsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		l, run := w.begin(nil), newRun("run-1")
		l.later(inBackup, l.loseLease)
		_, err := l.run(request(), run)
		checkEnded(t, l, run, err)
		if run.Reason != policy.ReasonLeaseLost || len(w.pending) != 12 {
			t.Errorf("got %s (%s) and %d settings owed, want a lost lease and 12", run.Reason, run.Message, len(w.pending))
		}
		if !contains(run.Warnings, "run run-of-another-host on other.example has the cluster") {
			t.Errorf("warnings %q do not say who has the cluster", run.Warnings)
		}
	})
}

func TestBooksThatCannotBeWrittenAreAnError(t *testing.T) {
	tests := map[string]struct {
		save   string
		status policy.RunStatus
		told   bool // by the run itself, since starting the engine failed for it
	}{
		"before the first step":   {"records.save#1", policy.RunFailed, false},
		"before settings change":  {"records.save#4", policy.RunFailed, false},
		"when the engine started": {"records.save#9", policy.RunFailed, true},
		"before the end":          {"records.save#13", policy.RunSucceeded, false},
		"at the end":              {"records.save#16", policy.RunSucceeded, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				l, run := w.begin(map[string]fault{tt.save: fails}), newRun("run-1")
				_, err := l.run(request(), run)
				checkEnded(t, l, run, err)
				if saved := w.saved(run.ID); saved != nil && saved.Status.Final() {
					checkClean(t, w)
				} else if tt.save != "records.save#16" {
					t.Errorf("the end is not recorded: %+v", saved)
				}
				if run.Status != tt.status {
					t.Errorf("got %s %s: %s", run.Status, run.Reason, run.Message)
				}
				if got := errors.Is(err, errInjected); got == tt.told {
					t.Errorf("got error %v", err)
				}
			})
		})
	}
}
