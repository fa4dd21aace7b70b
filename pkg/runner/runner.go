package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// Causes with which the caller cancels a run. Any other cause counts as
// interrupted.
var (
	ErrStoppedByOperator = errors.New("stopped by an operator")
	ErrMaxDuration       = errors.New("ran longer than max_duration")
	errLeaseLost         = errors.New("the cluster's lease was lost")
	errStalled           = errors.New("br makes no progress")
	errBackupLost        = errors.New("GC passed the backup's timestamp")
)

// Request says how one run is to be made.
type Request struct {
	Options       policy.Options
	AllowEmpty    bool
	MaxDuration   time.Duration // 0: none
	SettleTimeout time.Duration // for TiKV to apply the thread limit
	NoProgress    time.Duration // without a change of br's progress before it is stopped; 0: for ever
	UndoTimeout   time.Duration // for ending br and for putting settings back, each, before it is left to the journal
	MonitorEvery  time.Duration // between looks at the cluster while br runs
}

const (
	defaultUndoTimeout  = 2 * time.Minute
	defaultMonitorEvery = 5 * time.Second
	recordTimeout       = 20 * time.Second
)

// Runner drives one run at a time.
type Runner struct {
	deps  Deps
	req   Request
	lease Lease
	// abort cancels the run's context with a cause; keeping are the goroutines
	// that may call it.
	abort   context.CancelCauseFunc
	keeping sync.WaitGroup
	// cluster is the topology that the plan was made for.
	cluster policy.Cluster
	version string // of the engine
}

// New returns a runner over deps.
func New(deps Deps, req Request) *Runner {
	if req.UndoTimeout == 0 {
		req.UndoTimeout = defaultUndoTimeout
	}
	if req.MonitorEvery == 0 {
		req.MonitorEvery = defaultMonitorEvery
	}
	if deps.Observe == nil {
		deps.Observe = func(Status) {}
	}
	if deps.Reached == nil {
		deps.Reached = func(string) {}
	}
	if deps.Same == nil {
		deps.Same = func(a, b string) bool { return a == b }
	}
	return &Runner{deps: deps, req: req}
}

// Run drives run from its step to its end and leaves the result in it. The
// error is nil whenever the result could be recorded, even for a failed run;
// it is set when brctl itself could not keep its books.
func (r *Runner) Run(ctx context.Context, run *Run) error {
	if r.req.MaxDuration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.req.MaxDuration, ErrMaxDuration)
		defer cancel()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r.abort = cancel
	defer r.keeping.Wait()
	defer cancel(nil)
	if run.Step == "" {
		run.Step, run.CreatedAt = StepLease, r.deps.Now()
	}
	var bookErr error
	for run.Step != StepDone {
		if err := guarded(func() error { return r.enter(ctx, run) }); err != nil && bookErr == nil {
			bookErr = fmt.Errorf("record step %s of run %s: %w", run.Step, run.ID, err)
			run.conclude(policy.RunFailed, policy.ReasonInternal, bookErr.Error())
			if !run.Step.undoes() {
				run.Step = StepEnd
				continue
			}
		}
		err := guarded(func() error { return r.do(ctx, run) })
		if err == nil {
			run.Step = run.Step.info().next
			continue
		}
		if run.Step == StepRecord {
			bookErr = errors.Join(bookErr, err)
		}
		r.fail(ctx, run, err)
	}
	if err := guarded(func() error { return r.releaseLease(ctx) }); err != nil {
		run.warn("release the cluster's lease: " + err.Error())
	}
	return bookErr
}

// enter records that a step begins, before it has any effect.
func (r *Runner) enter(ctx context.Context, run *Run) error {
	if status := run.Step.info().status; status != "" {
		run.Status = status
	}
	ctx, cancel := r.detached(ctx, recordTimeout)
	defer cancel()
	if err := r.deps.Records.Save(ctx, run); err != nil {
		return err
	}
	r.observe(run, Status{})
	return r.event(ctx, run, "step", "enter "+string(run.Step), nil)
}

func (r *Runner) do(ctx context.Context, run *Run) error {
	if !run.Step.undoes() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return r.forward(ctx, run)
	}
	return r.undo(ctx, run)
}

func (r *Runner) forward(ctx context.Context, run *Run) error {
	switch run.Step {
	case StepLease:
		return r.takeLease(ctx, run)
	case StepPreflight:
		return r.preflight(ctx, run)
	case StepPlan:
		return r.plan(ctx, run)
	case StepApply:
		return r.apply(ctx, run)
	case StepSettle:
		return r.settle(ctx, run)
	case StepBackup:
		return r.backup(ctx, run)
	case StepVerify:
		return r.verify(ctx, run)
	default:
		return fmt.Errorf("step %q is not known to this version", run.Step)
	}
}

func (r *Runner) undo(ctx context.Context, run *Run) error {
	ctx, cancel := r.detached(ctx, r.req.UndoTimeout)
	defer cancel()
	switch run.Step {
	case StepEnd:
		return r.end(ctx, run)
	case StepRestore:
		return r.restore(ctx, run)
	default:
		return r.record(ctx, run)
	}
}

// detached returns a context for work that must happen although the run was
// cancelled: it keeps the values, not the cancellation.
func (r *Runner) detached(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// stepError gives a failed step its reason.
type stepError struct {
	Verdict policy.RunStatus // RunFailed when empty
	Reason  policy.RunReason
	Err     error
}

func (e *stepError) Error() string { return e.Err.Error() }
func (e *stepError) Unwrap() error { return e.Err }

// Because gives err the reason that a run which fails for it shall have.
func Because(reason policy.RunReason, err error) error { return &stepError{Reason: reason, Err: err} }

func because(reason policy.RunReason, format string, args ...any) error {
	return &stepError{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// fail draws the verdict from a step's error and moves on to undoing. A step
// that undoes is never repeated here: what it could not do stays in the
// journal, and the next step follows.
func (r *Runner) fail(ctx context.Context, run *Run, err error) {
	if run.Step.undoes() {
		run.warn(err.Error())
		run.Step = run.Step.info().next
		return
	}
	verdict, reason := r.verdict(ctx, err)
	run.conclude(verdict, reason, err.Error())
	data := map[string]any{"step": run.Step, "reason": reason}
	if panicked, ok := errors.AsType[*panicError](err); ok {
		data["stack"] = panicked.stack
	}
	if err := guarded(func() error { return r.event(ctx, run, "step_failed", run.Message, data) }); err != nil {
		run.warn("record event: " + err.Error())
	}
	run.Step = StepEnd
}

func (r *Runner) verdict(ctx context.Context, err error) (policy.RunStatus, policy.RunReason) {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(err, ErrStoppedByOperator), errors.Is(cause, ErrStoppedByOperator):
		return policy.RunCancelled, policy.ReasonOperator
	case errors.Is(err, ErrMaxDuration), errors.Is(cause, ErrMaxDuration):
		return policy.RunFailed, policy.ReasonDeadline
	case errors.Is(err, errLeaseLost), errors.Is(cause, errLeaseLost):
		return policy.RunFailed, policy.ReasonLeaseLost
	case errors.Is(err, errStalled):
		return policy.RunFailed, policy.ReasonNoProgress
	case errors.Is(err, errBackupLost):
		return policy.RunFailed, policy.ReasonGC
	case cause != nil: // the error is but how the cancel showed itself
		return policy.RunInterrupted, policy.ReasonDied
	}
	var step *stepError
	if errors.As(err, &step) {
		if step.Verdict == "" {
			return policy.RunFailed, step.Reason
		}
		return step.Verdict, step.Reason
	}
	return policy.RunFailed, policy.ReasonInternal
}

// event records what happened, although the run may be cancelled: how a cancel
// went is worth knowing.
func (r *Runner) event(ctx context.Context, run *Run, kind, message string, data map[string]any) error {
	ctx, cancel := r.detached(ctx, recordTimeout)
	defer cancel()
	return r.deps.Records.Event(ctx, run.ID, policy.Event{At: r.deps.Now(), Kind: kind, Message: message, Data: data})
}

// note records an event and shows it; a book that cannot be written is a
// warning here, since the step's own Save will fail as well.
func (r *Runner) note(ctx context.Context, run *Run, kind, message string, data map[string]any) {
	if err := r.event(ctx, run, kind, message, data); err != nil {
		run.warn("record event: " + err.Error())
	}
	r.observe(run, Status{Note: message})
}

func (r *Runner) observe(run *Run, s Status) {
	s.Run = *run
	r.deps.Observe(s)
}

func (r *Runner) takeLease(ctx context.Context, run *Run) error {
	lease, err := r.deps.Leaser(ctx, run)
	var held *HeldError
	if errors.As(err, &held) {
		return &stepError{Verdict: policy.RunSkipped, Reason: policy.ReasonOverlap, Err: held}
	}
	if err != nil {
		return because(policy.ReasonUnavailable, "take the cluster's lease: %w", err)
	}
	r.holdLease(ctx, run, lease)
	return nil
}

// holdLease has the run cancelled when the lease is lost.
func (r *Runner) holdLease(ctx context.Context, run *Run, lease Lease) {
	r.lease, run.FenceToken = lease, lease.Token()
	r.keeping.Go(func() {
		select {
		case <-lease.Lost():
			r.abort(errLeaseLost)
		case <-ctx.Done():
		}
	})
}
