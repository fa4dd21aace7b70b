package runner_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/runner"
)

// effectsOf returns the effects of a life of brctl in a fresh world.
func effectsOf(t *testing.T, live func(t *testing.T, w *world) *life) []effect {
	t.Helper()
	var out []effect
	synctest.Test(t, func(t *testing.T) {
		out = live(t, newWorld(t)).effects()
	})
	return out
}

func happyEffects(t *testing.T) []effect {
	t.Helper()
	effects := effectsOf(t, func(t *testing.T, w *world) *life {
		t.Helper()
		l, _ := backUp(t, w, "run-1", nil)
		return l
	})
	if len(effects) < 100 {
		t.Fatalf("a backup has only %d effects", len(effects))
	}
	return effects
}

// canFail reports whether the fake of an effect has an error to return.
func canFail(e effect) bool {
	return e.op != "observe" && e.op != "point" && !strings.HasPrefix(e.op, "attempt.")
}

// TestWhateverGoesWrongAtAnyEffectTheRunEndsProperly injects each kind of fault
// at every effect of a backup, one at a time. What every run owes must hold
// (checkEnded); the next life then cleans up what could not be, and the backup
// after that succeeds.
func TestWhateverGoesWrongAtAnyEffectTheRunEndsProperly(t *testing.T) {
	kinds := map[string]fault{
		"an error":              fails,
		"a panic":               panics,
		"a stop by an operator": cancels(runner.ErrStoppedByOperator),
		"a cancel":              cancels(context.Canceled),
		"the loss of the lease": losesLease,
	}
	effects := happyEffects(t)
	for kind, f := range kinds {
		for _, e := range effects {
			if kind == "an error" && !canFail(e) {
				continue
			}
			t.Run(kind+" at "+e.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					_, run := backUp(t, w, "run-1", map[string]fault{e.name(): f})
					checkVerdict(t, kind, e, run)
					cleanUpAndBackUpAgain(t, w)
				})
			})
		}
	}
}

// checkVerdict holds what the kinds of fault have in common, up to the moment
// from which a backup is complete.
func checkVerdict(t *testing.T, kind string, e effect, run *runner.Run) {
	t.Helper()
	if run.Status == policy.RunSucceeded {
		return // not every fault is one: a look that fails is no news
	}
	want := map[string]policy.RunStatus{
		"a stop by an operator": policy.RunCancelled,
		"a cancel":              policy.RunInterrupted,
	}[kind]
	if want == "" {
		want = policy.RunFailed
	}
	if run.Status != want {
		t.Errorf("got %s (%s, %s), want %s", run.Status, run.Reason, run.Message, want)
	}
	reasons := map[string][]policy.RunReason{
		"a panic":               {policy.ReasonInternal},
		"the loss of the lease": {policy.ReasonLeaseLost},
	}[kind]
	if reasons != nil && !slices.Contains(reasons, run.Reason) {
		t.Errorf("got %s (%s), want %v", run.Reason, run.Message, reasons)
	}
}

// cleanUpAndBackUpAgain is the next start of brctl, without faults, and a
// backup.
func cleanUpAndBackUpAgain(t *testing.T, w *world) {
	t.Helper()
	w.do(func() { w.leaseOf = "" }) // its TTL has passed
	survived, _, err := w.begin(nil).recover(request())
	if !survived || err != nil {
		t.Fatalf("recover: survived %t, %v", survived, err)
	}
	checkClean(t, w)
	w.do(func() { w.script, w.outcome = steadyScript(), policy.Outcome{Class: policy.OutcomeSuccess} })
	_, again := backUp(t, w, "run-2", nil)
	if again.Status != policy.RunSucceeded {
		t.Errorf("the next backup %s: %s %s", again.Status, again.Reason, again.Message)
	}
	for _, c := range again.Settings {
		if c.Old != w.original[c.SettingKey] {
			t.Errorf("%s: the next backup takes %s for the old value, it was %s", c.SettingKey, c.Old, w.original[c.SettingKey])
		}
	}
	checkClean(t, w)
}
