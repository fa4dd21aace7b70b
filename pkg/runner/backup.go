package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// backup runs one attempt of the engine and watches the cluster meanwhile.
func (r *Runner) backup(ctx context.Context, run *Run) error {
	if err := r.checkLease(ctx); err != nil {
		return err
	}
	if err := r.checkChildren(ctx, run); err != nil {
		return err
	}
	run.Attempts++
	if run.EngineStartedAt.IsZero() {
		run.EngineStartedAt = r.deps.Now()
	}
	if err := r.deps.Records.Save(ctx, run); err != nil {
		return because(policy.ReasonInternal, "record the attempt: %w", err)
	}
	r.note(ctx, run, "attempt", fmt.Sprintf("start attempt %d", run.Attempts), map[string]any{"args": run.Invocation.Args})
	r.deps.Reached("before_engine_start")
	attempt, err := r.deps.Engine.Start(ctx, *run.Invocation, func(ref policy.ChildRef) error {
		return r.childStarted(ctx, run, ref)
	})
	if err != nil {
		return because(policy.ReasonEngine, "start the engine: %w", err)
	}
	stopCause := guarded(func() error { return r.watch(ctx, run, attempt) })
	if _, panicked := errors.AsType[*panicError](stopCause); panicked {
		abandon(attempt)
	}
	outcome := attempt.Wait()
	run.Outcome, run.EngineEndedAt = &outcome, r.deps.Now()
	r.takeOutcome(run, outcome)
	if stopCause == nil {
		return outcomeError(outcome)
	}
	if outcome.Class == policy.OutcomeSuccess {
		run.warn("br had finished before it could be stopped: there is an unverified backup at " + run.StorageURL)
	}
	return stopCause
}

// abandon stops an attempt that nobody watches any more.
func abandon(attempt Attempt) {
	attempt.Stop()
	for range attempt.Events() {
		continue // the engine ends only when its events are taken
	}
}

// childStarted makes the process known to the journal and the record before
// anything else happens, so that no death of ours can lose it.
func (r *Runner) childStarted(ctx context.Context, run *Run, ref policy.ChildRef) error {
	run.Child = &ref
	if err := r.deps.Journal.ChildStarted(run.ID, ref); err != nil {
		return fmt.Errorf("journal process %d: %w", ref.PID, err)
	}
	ctx, cancel := r.detached(ctx, recordTimeout)
	defer cancel()
	if err := r.deps.Records.Save(ctx, run); err != nil {
		return fmt.Errorf("record process %d: %w", ref.PID, err)
	}
	r.deps.Reached("engine_started")
	return nil
}

func (r *Runner) takeOutcome(run *Run, o policy.Outcome) {
	if o.BackupTS != 0 {
		run.BackupTS = o.BackupTS
	}
	if o.ServiceID != "" {
		run.ServiceSafePoint = o.ServiceID
	}
	if o.EscapedChild {
		run.warn("a child of br outlived it and was killed")
	}
}

func outcomeError(o policy.Outcome) error {
	if o.Class == policy.OutcomeSuccess {
		return nil
	}
	reason := policy.ReasonEngine
	if o.Class == policy.OutcomeTargetInUse {
		reason = policy.ReasonStorage
	}
	text := o.Reason
	if o.Hint != "" {
		text += " (" + o.Hint + ")"
	}
	return because(reason, "br (%s, exit code %d): %s", o.Class, o.ExitCode, text)
}

// watch follows the attempt until it is over. It returns why the attempt was
// stopped, or nil when it ended by itself.
func (r *Runner) watch(ctx context.Context, run *Run, attempt Attempt) error {
	monitorCtx, stopMonitor := context.WithCancel(ctx)
	view := newView(r, run)
	reports := make(chan report)
	var wg sync.WaitGroup
	wg.Go(func() { r.monitor(monitorCtx, reports) })
	defer wg.Wait()
	defer stopMonitor()

	var stopCause error
	stop := func(cause error) {
		if stopCause == nil {
			stopCause = cause
			r.note(ctx, run, "stopping", "stop br: "+cause.Error(), nil)
			attempt.Stop()
		}
	}
	done, events := ctx.Done(), attempt.Events()
	stall := newStall(r.req.NoProgress)
	defer stall.stop()
	for {
		select {
		case event, ok := <-events:
			if !ok {
				return stopCause
			}
			if event.Kind == policy.AttemptProgress {
				stall.restart()
			}
			r.takeEvent(ctx, run, view, event)
		case rep := <-reports:
			r.takeReport(ctx, run, view, rep, stop)
		case <-done:
			done = nil
			stop(context.Cause(ctx))
		case <-stall.expired:
			stop(fmt.Errorf("%w: %s for %s", errStalled, view.standing(), r.req.NoProgress))
		}
	}
}

func (r *Runner) takeEvent(ctx context.Context, run *Run, view *view, event policy.AttemptEvent) {
	switch event.Kind {
	case policy.AttemptProgress:
		view.progress(event.Progress)
		r.deps.Observe(view.status(r.deps.Now()))
	case policy.AttemptBackupTS:
		run.BackupTS = event.BackupTS
		r.keep(ctx, run, "backup_ts", fmt.Sprintf("BackupTS is %s (%s)", event.BackupTS, event.BackupTS.Time().Format(time.RFC3339)))
		r.deps.Reached("backup_ts_known")
	case policy.AttemptSafePoint:
		run.ServiceSafePoint = event.ServiceSafePoint
		r.keep(ctx, run, "service_safe_point", "br holds GC with service safepoint "+event.ServiceSafePoint)
	case policy.AttemptRound:
		r.note(ctx, run, "round", fmt.Sprintf("round %d, %d ranges to go", event.Round, event.IncompleteRanges), nil)
	case policy.AttemptDiagnostic:
		r.note(ctx, run, "diagnostic", event.Message, nil)
	}
}

// keep notes something that must be known after a crash: it saves the run too.
func (r *Runner) keep(ctx context.Context, run *Run, kind, message string) {
	r.note(ctx, run, kind, message, nil)
	saveCtx, cancel := r.detached(ctx, recordTimeout)
	defer cancel()
	if err := r.deps.Records.Save(saveCtx, run); err != nil {
		run.warn("record " + kind + ": " + err.Error())
	}
}

// takeReport acts on one look at the cluster.
func (r *Runner) takeReport(ctx context.Context, run *Run, view *view, rep report, stop func(error)) {
	if rep.err != nil {
		stop(rep.err)
		return
	}
	view.report(rep)
	if run.BackupTS != 0 && !rep.pdNow.IsZero() {
		p := r.deps.Protect(rep.safePoints, rep.pdNow, run.BackupTS, run.ServiceSafePoint)
		if p.Lost != "" {
			stop(fmt.Errorf("%w: %s", errBackupLost, p.Lost))
			return
		}
		r.noteProtection(ctx, run, view, p)
	}
	for _, s := range view.toSetAgain(rep.stores) {
		if ctx.Err() == nil {
			r.setAgain(ctx, run, view, s)
		}
	}
	r.deps.Observe(view.status(r.deps.Now()))
}

// noteProtection says once who holds GC back besides this backup, and that the
// backup's own hold does not stand, if two looks in a row say so: br renews it
// three times within its time to live.
func (r *Runner) noteProtection(ctx context.Context, run *Run, view *view, p Protection) {
	if p.Blocker != "" && view.once("blocker") {
		r.note(ctx, run, "gc_blocker", p.Blocker, nil)
	}
	if p.Unheld != "" && view.unheld && view.once("unheld") {
		r.note(ctx, run, "gc_unheld", p.Unheld, nil)
		run.warn(p.Unheld)
	}
	view.unheld = p.Unheld != ""
}

// setAgain gives the planned settings to a TiKV that joined or restarted. What
// does not succeed is tried again at the next look, store by store: one that
// cannot be set keeps no other from it.
func (r *Runner) setAgain(ctx context.Context, run *Run, view *view, s policy.Store) {
	settings := policy.SettingsFor(*run.Plan, s)
	err := r.checkLease(ctx)
	if err == nil {
		err = r.applySettings(ctx, run, settings)
	}
	var step *stepError
	switch {
	case err == nil:
		view.settled(s)
		r.note(ctx, run, "set_again", fmt.Sprintf("%s joined or restarted, and was set again", s.Address), nil)
	case errors.Is(err, errLeaseLost), errors.As(err, &step) && step.Reason == policy.ReasonSettings:
		if view.newTrouble(s.ID) {
			r.note(ctx, run, "set_again_failed", err.Error(), nil)
		}
	default:
		run.warn(err.Error())
	}
}
