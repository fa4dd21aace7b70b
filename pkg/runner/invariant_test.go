package runner_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/runner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newRun(id string) *runner.Run {
	return &runner.Run{ID: id, Schedule: "nightly", ClusterID: clusterID, StorageURL: "local:///backups/" + id}
}

// request asks for a backup under impact control, so that each TiKV gets three
// settings.
func request() runner.Request {
	return runner.Request{
		Options: policy.Options{Control: true}, SettleTimeout: 20 * time.Second,
		// No look falls on the moment of an event of steadyScript, so that a backup
		// has the same effects each time.
		UndoTimeout: undoTimeout, MonitorEvery: 3500 * time.Millisecond,
	}
}

// backUp runs one backup in a life of its own and checks what every run owes.
func backUp(t *testing.T, w *world, id string, faults map[string]fault) (*life, *runner.Run) {
	t.Helper()
	l, run := w.begin(faults), newRun(id)
	survived, err := l.run(request(), run)
	if !survived {
		t.Fatal("the run ended without returning")
	}
	checkEnded(t, l, run, err)
	return l, run
}

// checkEnded holds what is true of every run that came back, whatever went
// wrong in it.
func checkEnded(t *testing.T, l *life, run *runner.Run, err error) {
	t.Helper()
	if run.Step != runner.StepDone || !run.Status.Final() || run.Status != run.Verdict {
		t.Errorf("run ended in step %q, status %q, verdict %q", run.Step, run.Status, run.Verdict)
	}
	if run.Status != policy.RunSucceeded && (run.Reason == "" || run.Message == "") {
		t.Errorf("run %s without a reason: %q %q", run.Status, run.Reason, run.Message)
	}
	saved := l.saved(run.ID)
	if err == nil && (saved == nil || saved.Status != run.Status) {
		t.Errorf("no error, although the record says %+v and the run is %s", saved, run.Status)
	}
	checkWorld(t, l.world)
	checkOrder(t, l)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaseOf == run.ID && l.faults["lease.release#1"] == nil {
		t.Error("the lease is still held")
	}
	if n := len(l.alive()); n > 0 {
		t.Errorf("%d engines still run", n)
	}
}

// checkWorld holds what is true of the world at any moment: nothing forbidden
// was done, and a setting that is not as it was is owed by the journal.
func checkWorld(t *testing.T, w *world) {
	t.Helper()
	now := w.settings()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.violations {
		t.Error(v)
	}
	for _, k := range sortedKeys(w.original) {
		value, exists := now[k]
		if p := w.pending[k]; exists && value != w.original[k] && (p == nil || p.old != w.original[k]) {
			t.Errorf("%s is %s, was %s, and the journal owes %+v", k, value, w.original[k], p)
		}
	}
}

// checkClean holds what is true once nothing is left to do.
func checkClean(t *testing.T, w *world) {
	t.Helper()
	checkWorld(t, w)
	if diff := cmp.Diff(w.original, w.settings()); diff != "" {
		t.Errorf("settings (-original +now):\n%s", diff)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending) > 0 || len(w.children) > 0 || len(w.alive()) > 0 {
		t.Errorf("left: %d settings owed, %d children in the journal, %d engines alive", len(w.pending), len(w.children), len(w.alive()))
	}
	for id, data := range w.records {
		if run := decodeRun(data); !run.Status.Final() {
			t.Errorf("run %s is not closed: %s in step %s", id, run.Status, run.Step)
		}
	}
}

// checkOrder holds what is true of the order of every life's effects.
func checkOrder(t *testing.T, l *life) {
	t.Helper()
	effects := l.effects()
	last := func(match func(effect) bool) int {
		for i, e := range slices.Backward(effects) {
			if match(e) {
				return i
			}
		}
		return -1
	}
	changes := func(e effect) bool {
		return e.op == "settings.set" || e.op == "journal.put_back" || e.op == "engine.start" || e.op == "engine.recover"
	}
	taken := slices.IndexFunc(effects, func(e effect) bool { return e.op == "lease.take" })
	first := slices.IndexFunc(effects, changes)
	if first >= 0 && first < taken {
		t.Errorf("%s before the lease", effects[first])
	}
	recorded := last(func(e effect) bool { return e.op == "records.save" && strings.HasPrefix(e.detail, "record ") })
	if i := last(changes); recorded >= 0 && i > recorded {
		t.Errorf("%s after the final record", effects[i])
	}
	released := last(func(e effect) bool { return e.op == "lease.release" })
	for _, e := range effects[max(released+1, 0):] {
		if released >= 0 && e.op != "observe" && e.op != "point" {
			t.Errorf("%s after the lease was released", e)
		}
	}
}

func (e effect) String() string { return strings.TrimSpace(e.name() + " " + e.detail) }
