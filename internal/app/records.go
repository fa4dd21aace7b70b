package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/brctl/brctl/internal/logkey"
	"github.com/brctl/brctl/internal/state"
	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/runner"
)

// records keeps the runner's runs in the state database. The database knows
// attempts of a run one by one; the runner only the last, and what it knows of
// the attempt before until the next has come to that. So records remembers what
// it has written.
type records struct {
	db   *state.DB
	log  *zap.Logger
	open map[string]openAttempt // by run
}

type openAttempt struct {
	created bool
	n       int             // number of the last attempt, 0 before the first
	child   policy.ChildRef // written last, of whatever attempt
	outcome *policy.Outcome // written last, of whatever attempt
}

func newRecords(db *state.DB, log *zap.Logger) *records {
	return &records{db: db, log: log, open: map[string]openAttempt{}}
}

// Save implements runner.Records. The run's own row comes last: its step must
// not be ahead of what else is known, or a run that died in between would be
// taken up at a step that lacks its ground.
func (r *records) Save(ctx context.Context, run *runner.Run) error {
	row := rowOf(run)
	at := r.open[run.ID]
	if !at.created {
		if err := r.db.CreateRun(ctx, row); err != nil {
			return err
		}
		at.created = true
		r.open[run.ID] = at
	}
	if err := r.saveAttempt(ctx, run); err != nil {
		return err
	}
	if err := r.db.SaveSettings(ctx, run.ID, settingRows(run.Settings)); err != nil {
		return err
	}
	return r.db.UpdateRun(ctx, run.ID, updateOf(row))
}

func (r *records) saveAttempt(ctx context.Context, run *runner.Run) error {
	at := r.open[run.ID]
	if run.Attempts > at.n {
		n, err := r.db.StartAttempt(ctx, run.ID, time.Now())
		if err != nil {
			return err
		}
		at.n = n
		r.open[run.ID] = at
	}
	if run.Child != nil && at.n > 0 && at.child != *run.Child {
		if err := r.db.AttemptChild(ctx, run.ID, at.n, *run.Child); err != nil {
			return err
		}
		at.child = *run.Child
		r.open[run.ID] = at
	}
	if run.Outcome == nil || run.Outcome == at.outcome || at.n == 0 {
		return nil
	}
	if err := r.db.EndAttempt(ctx, run.ID, at.n, run.EngineEndedAt, *run.Outcome); err != nil {
		return err
	}
	at.outcome = run.Outcome
	r.open[run.ID] = at
	return nil
}

// Event implements runner.Records.
func (r *records) Event(ctx context.Context, runID string, event policy.Event) error {
	r.log.Info("run event", zap.String(logkey.RunID, runID), zap.String(logkey.Kind, event.Kind), zap.String(logkey.Text, event.Message))
	_, err := r.db.AppendEvent(ctx, runID, event)
	return err
}

// Unfinished implements runner.Records.
func (r *records) Unfinished(ctx context.Context, clusterID uint64) ([]*runner.Run, error) {
	rows, err := r.db.UnfinishedRuns(ctx, clusterID)
	if err != nil {
		return nil, err
	}
	var out []*runner.Run
	for _, row := range rows {
		run, err := r.load(ctx, row)
		if err != nil {
			return nil, fmt.Errorf("read run %s: %w", row.ID, err)
		}
		out = append(out, run)
	}
	return out, nil
}

func (r *records) load(ctx context.Context, row state.Run) (*runner.Run, error) {
	attempts, err := r.db.Attempts(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	settings, err := r.db.Settings(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	run := runOf(row)
	at := openAttempt{created: true}
	if n := len(attempts); n > 0 {
		last := attempts[n-1]
		run.Attempts, run.Child, run.Outcome = last.N, childOf(run.Step, last), last.Outcome
		run.EngineEndedAt = last.EndedAt
		at.n, at.outcome = last.N, last.Outcome
		if last.Child != nil {
			at.child = *last.Child
		}
	}
	r.open[row.ID] = at
	for _, s := range settings {
		run.Settings = append(run.Settings, runner.SettingChange{
			SettingKey: s.SettingKey, StoreID: s.StoreID, Old: s.Old, Set: s.Set,
			Restored: runner.RestoreState(s.Restored), Message: s.Message,
		})
	}
	return run, nil
}

// childOf returns the attempt's process while it may live: until its outcome is
// known, or the step that ends it is over. One that could not be ended is in
// the journal.
func childOf(step runner.Step, a state.Attempt) *policy.ChildRef {
	ended := step == runner.StepRestore || step == runner.StepRecord || step == runner.StepDone
	if ended || a.Outcome != nil {
		return nil
	}
	return a.Child
}

func rowOf(run *runner.Run) state.Run {
	row := state.Run{
		ID: run.ID, ClusterID: run.ClusterID, ClusterName: run.ClusterName, Schedule: run.Schedule, Trigger: run.Trigger,
		Status: run.Status, Step: string(run.Step), Verdict: run.Verdict, Reason: run.Reason, Message: run.Message,
		Warnings: run.Warnings, Plan: run.Plan, Invocation: run.Invocation, StorageURL: run.StorageURL,
		BackupTS: run.BackupTS, ServiceSafePoint: run.ServiceSafePoint, SizeBytes: run.Size(), Duration: run.Duration(),
		CreatedAt: run.CreatedAt, StartedAt: run.EngineStartedAt, EndedAt: run.EndedAt,
		Host: hostName(), PID: os.Getpid(), BootID: bootID(), Fence: uint64(run.FenceToken),
	}
	if run.Plan != nil {
		row.Forecast = run.Plan.Forecast.Duration
	}
	return row
}

func runOf(row state.Run) *runner.Run {
	return &runner.Run{
		ID: row.ID, Schedule: row.Schedule, Trigger: row.Trigger, ClusterName: row.ClusterName, ClusterID: row.ClusterID,
		StorageURL: row.StorageURL, Status: row.Status, Step: runner.Step(row.Step), Verdict: row.Verdict,
		Reason: row.Reason, Message: row.Message, Warnings: row.Warnings, Plan: row.Plan, Invocation: row.Invocation,
		BackupTS: row.BackupTS, ServiceSafePoint: row.ServiceSafePoint, FenceToken: int64(row.Fence),
		CreatedAt: row.CreatedAt, EndedAt: row.EndedAt, EngineStartedAt: row.StartedAt,
	}
}

// updateOf writes every field that may change.
func updateOf(r state.Run) state.RunUpdate {
	return state.RunUpdate{
		Status: &r.Status, Step: &r.Step, Verdict: &r.Verdict, Reason: &r.Reason, Message: &r.Message,
		Warnings: &r.Warnings, Plan: r.Plan, Invocation: r.Invocation, StorageURL: &r.StorageURL,
		BackupTS: &r.BackupTS, ServiceSafePoint: &r.ServiceSafePoint, SizeBytes: &r.SizeBytes,
		Forecast: &r.Forecast, Duration: &r.Duration, StartedAt: &r.StartedAt, EndedAt: &r.EndedAt,
		Host: &r.Host, PID: &r.PID, BootID: &r.BootID, Fence: &r.Fence,
	}
}

func settingRows(changes []runner.SettingChange) []state.Setting {
	rows := make([]state.Setting, len(changes))
	for i, c := range changes {
		rows[i] = state.Setting{
			SettingKey: c.SettingKey, StoreID: c.StoreID, Old: c.Old, Set: c.Set,
			Restored: string(c.Restored), Message: c.Message,
		}
	}
	return rows
}

func bootID() string {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(data))
}

// stateTrouble says what an unusable database means: no run starts, while
// settings were put back all the same.
func stateTrouble(err error) *Error {
	hint := "no run starts without its record; settings that an earlier run changed have been put back where possible"
	if errors.Is(err, state.ErrNewerSchema) {
		hint = "use the newer brctl; " + hint
	}
	return &Error{Kind: KindFailed, Err: err, Hint: hint}
}
