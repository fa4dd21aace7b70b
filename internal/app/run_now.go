package app

import (
	"context"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/brctl/brctl/internal/engine/br"
	"github.com/brctl/brctl/pkg/runner"
)

// The command line knows no runner: these are what it shows of a run.
type (
	// Status is what a run shows while it works.
	Status = runner.Status
	// HostStatus is one host of a Status.
	HostStatus = runner.HostStatus
	// RestoreState is what became of a setting that was to be put back.
	RestoreState = runner.RestoreState
)

// The restore states and steps that the command line tells apart.
const (
	Restored         = runner.Restored
	RestorePending   = runner.RestorePending
	RestoreUntouched = runner.RestoreUntouched
	StepBackup       = runner.StepBackup
)

// ErrStoppedByOperator is the cause with which a person's wish to stop cancels
// a run's context.
var ErrStoppedByOperator = runner.ErrStoppedByOperator

// RunNowOptions are what a person asks of one run.
type RunNowOptions struct {
	ConfigPath string
	Schedule   string
	NoLease    bool
	NumThreads int // 0: as planned
	Observe    func(Status)
	Warn       func(text string)
}

// RunNow makes one backup in the foreground. The result is valid whenever it has
// a run id, also beside an error: that of books that could not be kept.
func RunNow(ctx context.Context, opts RunNowOptions) (Result, error) {
	t, err := findTarget(opts.ConfigPath, opts.Schedule)
	if err != nil {
		return Result{}, err
	}
	w, err := openWork(ctx, t, opts)
	if err != nil {
		return Result{}, err
	}
	run, err := w.run(ctx, opts)
	if closing := w.close(); closing != nil {
		run.Warnings = append(run.Warnings, closing.Error())
	}
	if err != nil {
		return resultOf(run), &Error{Kind: KindFailed, Err: err}
	}
	return resultOf(run), nil
}

func (w *work) run(ctx context.Context, opts RunNowOptions) (*runner.Run, error) {
	id := ulid.Make().String()
	req := w.request()
	if opts.NumThreads > 0 {
		req.Options.NumThreads = &opts.NumThreads
	}
	run := &runner.Run{
		ID: id, Schedule: w.target.schedule.Name, Trigger: "manual", ClusterName: w.target.cluster.Name,
		ClusterID: w.id, StorageURL: br.RunURL(w.target.base(), time.Now(), id),
	}
	return run, runner.New(w.deps, req).Run(ctx, run)
}
