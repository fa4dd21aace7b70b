package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/brctl/brctl/internal/state"
	"github.com/brctl/brctl/pkg/runner"
)

// recover closes the runs of an earlier life, and puts its settings back. While
// another brctl works on the cluster they stay as they are: its own restore
// would come on top of ours.
func (w *work) recover(ctx context.Context, warn func(string)) error {
	unfinished, err := w.db.UnfinishedRuns(ctx, w.id)
	if err != nil {
		return stateTrouble(err)
	}
	left := w.journal.Contents()
	if len(unfinished)+len(left.Pending)+len(left.Children) == 0 {
		return nil
	}
	var failed error
	held := underLease(ctx, w.deps.Leaser, warn, func() {
		warnings, err := runner.Recover(ctx, w.deps, w.request(), w.id)
		warnAll(warn, warnings)
		failed = err
	})
	if held != nil {
		warn("an earlier run is not closed yet: " + held.Error())
	}
	if failed != nil {
		return &Error{Kind: KindFailed, Err: failed}
	}
	return nil
}

// holdLife is longer than br's service safepoints live after br is gone.
const holdLife = 3 * time.Hour

// releaseHolds ends the holds on GC that ended runs could not release, because
// PD did not answer at their end. They would hold GC for over an hour.
func (w *work) releaseHolds(ctx context.Context, warn func(string)) error {
	runs, err := w.db.Runs(ctx, state.Filter{ClusterID: w.id, Since: time.Now().Add(-holdLife)})
	if err != nil {
		return stateTrouble(err)
	}
	for _, run := range runs {
		if !run.Status.Final() || run.ServiceSafePoint == "" {
			continue
		}
		if err := w.deps.SafePoints.Release(ctx, run.ServiceSafePoint); err != nil {
			warn(fmt.Sprintf("service safepoint %s of run %s still holds GC: %s", run.ServiceSafePoint, run.ID, err))
			continue
		}
		warn(fmt.Sprintf("released service safepoint %s, which run %s had left", run.ServiceSafePoint, run.ID))
		none := ""
		if err := w.db.UpdateRun(ctx, run.ID, state.RunUpdate{ServiceSafePoint: &none}); err != nil {
			return stateTrouble(err)
		}
	}
	return nil
}

// underLease undoes under the cluster's lease. A lease that another brctl holds
// is an error, and nothing is undone; an etcd that does not answer is none, for
// undoing must not depend on it.
func underLease(ctx context.Context, take runner.Leaser, warn func(string), undo func()) error {
	lease, err := take(ctx, &runner.Run{ID: "restore"})
	var held *runner.HeldError
	if errors.As(err, &held) {
		return held
	}
	if err != nil {
		warn("restoring without the cluster's lease: " + err.Error())
		undo()
		return nil
	}
	undo()
	releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := lease.Release(releasing); err != nil {
		warn("release the cluster's lease: " + err.Error())
	}
	return nil
}

const releaseTimeout = 20 * time.Second
