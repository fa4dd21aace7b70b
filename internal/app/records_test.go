package app

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/zap"

	"github.com/brctl/brctl/internal/state"
	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/runner"
)

const clusterID = 7412345678901234567

func openState(t *testing.T) *state.DB {
	t.Helper()
	db, err := state.Open(t.Context(), t.TempDir(), state.Options{Brctl: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func at(second int) time.Time { return time.Date(2026, 1, 2, 3, 4, second, 567e6, time.UTC) }

// life is a run step by step, as the runner saves it: each function does to the
// run what its step has done by the time the next one begins.
func life() []func(*runner.Run) {
	return []func(*runner.Run){
		func(r *runner.Run) { r.Step, r.Status = runner.StepLease, policy.RunQueued },
		func(r *runner.Run) { r.Step, r.Status, r.FenceToken = runner.StepPreflight, policy.RunPreflight, 42 },
		func(r *runner.Run) { r.Step, r.Warnings = runner.StepPlan, []string{"a store is silent"} },
		func(r *runner.Run) {
			r.Step = runner.StepApply
			r.Plan = &policy.Plan{Tier: "small", NumThreads: 2, Forecast: policy.Forecast{Duration: time.Hour}}
			r.Invocation = &policy.Invocation{Engine: "br", Binary: "/usr/bin/br", Args: []string{"backup", "full"}, LogFile: "/log"}
		},
		func(r *runner.Run) {
			r.Step = runner.StepBackup
			r.Settings = []runner.SettingChange{
				{SettingKey: policy.SettingKey{Instance: "h1:20160", Name: "backup.num-threads"}, StoreID: 1, Old: "8", Set: "2"},
				{SettingKey: policy.SettingKey{Instance: "h2:20160", Name: "backup.num-threads"}, StoreID: 2, Old: "12", Set: "2"},
			}
		},
		func(r *runner.Run) { // br was started
			r.Status, r.Attempts, r.EngineStartedAt = policy.RunRunning, 1, at(10)
			r.Child = &policy.ChildRef{PID: 4711, StartTicks: 99, BootID: "boot"}
		},
		func(r *runner.Run) { r.BackupTS, r.ServiceSafePoint = policy.TSFromTime(at(11)), "br-id" },
		func(r *runner.Run) { // br is gone
			r.Step, r.Status, r.EngineEndedAt, r.Child = runner.StepVerify, policy.RunVerifying, at(20), nil
			r.Outcome = &policy.Outcome{Class: policy.OutcomeSuccess, Summary: &policy.Summary{SizeBytes: 1 << 30, BackupTS: r.BackupTS}}
		},
		func(r *runner.Run) { r.Step, r.Verdict = runner.StepEnd, policy.RunSucceeded },
		func(r *runner.Run) { r.Step = runner.StepRestore },
		func(r *runner.Run) {
			r.Step = runner.StepRecord
			r.Settings[0].Restored = runner.Restored
			r.Settings[1].Restored, r.Settings[1].Message = runner.RestorePending, "no answer"
		},
	}
}

func newRun() *runner.Run {
	return &runner.Run{
		ID: "01JDZ8V0000000000000000000", Schedule: "nightly", Trigger: "manual", ClusterName: "prod", ClusterID: clusterID,
		StorageURL: "local:///b/prod/nightly/x", CreatedAt: at(0),
	}
}

// afterDeath returns the run as the next brctl finds it.
func afterDeath(t *testing.T, db *state.DB) *runner.Run {
	t.Helper()
	runs, err := newRecords(db, zap.NewNop()).Unfinished(t.Context(), clusterID)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 1 {
		t.Fatalf("%d unfinished runs, want 1", len(runs))
	}
	return runs[0]
}

func save(t *testing.T, r *records, run *runner.Run) {
	t.Helper()
	if err := r.Save(t.Context(), run); err != nil {
		t.Fatal(err)
	}
}

func TestARunSavedAtAnyStepComesBackAsItWas(t *testing.T) {
	db, run := openState(t), newRun()
	r := newRecords(db, zap.NewNop())
	for i, step := range life() {
		step(run)
		save(t, r, run)
		if diff := cmp.Diff(run, afterDeath(t, db), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("save %d, step %s (-saved +loaded):\n%s", i, run.Step, diff)
		}
	}
}

// A brctl that dies at every save, and takes the run up again each time.
func TestARunMayChangeHandsAfterEachStep(t *testing.T) {
	db, want := openState(t), newRun()
	save(t, newRecords(db, zap.NewNop()), want)
	for _, step := range life() {
		step(want)
		next := newRecords(db, zap.NewNop())
		runs, err := next.Unfinished(t.Context(), clusterID)
		if err != nil {
			t.Fatal(err)
		}
		step(runs[0])
		save(t, next, runs[0])
	}
	if diff := cmp.Diff(want, afterDeath(t, db), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
	attempts, err := db.Attempts(t.Context(), want.ID)
	if err != nil || len(attempts) != 1 {
		t.Errorf("%d attempts (%v), want 1", len(attempts), err)
	}
}

func TestAFinishedRunIsNotTakenUpAgain(t *testing.T) {
	db, run := openState(t), newRun()
	r := newRecords(db, zap.NewNop())
	for _, step := range life() {
		step(run)
		save(t, r, run)
	}
	run.Step, run.Status, run.EndedAt = runner.StepDone, policy.RunSucceeded, at(30)
	save(t, r, run)
	if runs, err := newRecords(db, zap.NewNop()).Unfinished(t.Context(), clusterID); err != nil || len(runs) != 0 {
		t.Errorf("unfinished: %v, %v; want none", runs, err)
	}
	row, err := db.Run(t.Context(), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	if row.Duration != 10*time.Second || row.Forecast != time.Hour || row.SizeBytes != 1<<30 || !row.EndedAt.Equal(at(30)) {
		t.Errorf("got duration %s, forecast %s, size %d, end %s", row.Duration, row.Forecast, row.SizeBytes, row.EndedAt)
	}
}

// What is known of the first attempt stays in the run until the second has come
// to the same; it must not become the second's.
func TestTwoAttemptsKeepTheirOwnProcessAndOutcome(t *testing.T) {
	db, run := openState(t), newRun()
	r := newRecords(db, zap.NewNop())
	first, second := policy.ChildRef{PID: 1, BootID: "b"}, policy.ChildRef{PID: 2, BootID: "b"}
	run.Step, run.Status, run.EngineStartedAt = runner.StepBackup, policy.RunRunning, at(1)
	run.Attempts, run.Child = 1, &first
	save(t, r, run)
	run.Outcome, run.EngineEndedAt = &policy.Outcome{Class: policy.OutcomeTransient, ExitCode: 1}, at(2)
	save(t, r, run)
	run.Attempts = 2
	save(t, r, run)
	attempts, err := db.Attempts(t.Context(), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(attempts) != 2 || attempts[1].Child != nil || attempts[1].Outcome != nil {
		t.Fatalf("attempts %+v, want a second one of which nothing is known", attempts)
	}
	run.Child = &second
	save(t, r, run)
	if got := afterDeath(t, db); got.Attempts != 2 || *got.Child != second || got.Outcome != nil || !got.EngineStartedAt.Equal(at(1)) {
		t.Errorf("after death: attempt %d, child %v, outcome %v, engine start %s", got.Attempts, got.Child, got.Outcome, got.EngineStartedAt)
	}
	run.Outcome, run.EngineEndedAt = &policy.Outcome{Class: policy.OutcomeSuccess}, at(9)
	save(t, r, run)
	attempts, err = db.Attempts(t.Context(), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	if *attempts[0].Child != first || attempts[0].Outcome.Class != policy.OutcomeTransient ||
		*attempts[1].Child != second || attempts[1].Outcome.Class != policy.OutcomeSuccess {
		t.Errorf("attempts %+v", attempts)
	}
}

func TestAnAttemptWhoseEngineDidNotStartIsRecorded(t *testing.T) {
	db, run := openState(t), newRun()
	r := newRecords(db, zap.NewNop())
	run.Step, run.Status, run.Attempts, run.Verdict = runner.StepEnd, policy.RunRunning, 1, policy.RunFailed
	save(t, r, run)
	if got := afterDeath(t, db); got.Attempts != 1 || got.Child != nil || !got.EngineStartedAt.IsZero() {
		t.Errorf("attempt %d, child %v, engine start %s; want 1, none, never", got.Attempts, got.Child, got.EngineStartedAt)
	}
}

// The second life knows that br was ended in the first one: settings are not
// put back while a process may live.
func TestAProcessThatWasEndedIsNotTakenForAlive(t *testing.T) {
	for _, tc := range []struct {
		step  runner.Step
		alive bool
	}{
		{runner.StepBackup, true}, {runner.StepEnd, true}, {runner.StepRestore, false}, {runner.StepRecord, false},
	} {
		db, run := openState(t), newRun()
		r := newRecords(db, zap.NewNop())
		run.Step, run.Status, run.EngineStartedAt, run.Attempts = runner.StepBackup, policy.RunRunning, at(1), 1
		run.Child = &policy.ChildRef{PID: 4711}
		save(t, r, run)
		run.Step = tc.step
		save(t, r, run)
		if got := afterDeath(t, db).Child != nil; got != tc.alive {
			t.Errorf("step %s: a process is named: %v, want %v", tc.step, got, tc.alive)
		}
	}
}

func TestEventsAreAppendedInOrder(t *testing.T) {
	db, run := openState(t), newRun()
	r := newRecords(db, zap.NewNop())
	run.Step, run.Status = runner.StepLease, policy.RunQueued
	save(t, r, run)
	for _, kind := range []string{"step", "attempt", "stopping"} {
		if err := r.Event(t.Context(), run.ID, policy.Event{At: at(1), Kind: kind}); err != nil {
			t.Fatal(err)
		}
	}
	events, err := db.Events(t.Context(), run.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	if diff := cmp.Diff([]string{"step", "attempt", "stopping"}, kinds); diff != "" {
		t.Error(diff)
	}
}
