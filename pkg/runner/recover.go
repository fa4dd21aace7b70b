package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/brctl/brctl/pkg/policy"
)

// Recover finishes what an earlier life of brctl left of a cluster: for each
// unfinished run it ends the engine's process, puts settings back and records
// the run as interrupted, or as it would have ended where no more was missing;
// then it ends and restores whatever else the journal holds. What cannot be put
// back within req.UndoTimeout stays in the journal. It must be called while no
// other brctl uses the same state directory.
//
// The returned warnings are for people; the error is set when the records
// could not be read or written.
func Recover(ctx context.Context, deps Deps, req Request, clusterID uint64) (warnings []string, err error) {
	runs, err := deps.Records.Unfinished(ctx, clusterID)
	if err != nil {
		return nil, fmt.Errorf("list unfinished runs: %w", err)
	}
	for _, run := range runs {
		resumeAt(run)
		err = errors.Join(err, New(deps, req).Run(ctx, run))
		warnings = append(warnings, fmt.Sprintf("run %s of an earlier life is closed: %s", run.ID, run.Status))
		warnings = append(warnings, run.Warnings...)
	}
	return append(warnings, New(deps, req).recoverJournal(ctx)...), err
}

// Undo ends and restores what the journal holds, for a brctl whose records
// cannot be used: undoing must not depend on them. The warnings are for people.
func Undo(ctx context.Context, deps Deps, req Request) (warnings []string) {
	return New(deps, req).recoverJournal(ctx)
}

// recoverJournal undoes what the journal holds although no unfinished run does:
// a run whose end was recorded before all was put back, or lost records.
func (r *Runner) recoverJournal(ctx context.Context) (warnings []string) {
	ctx, cancel := r.detached(ctx, r.req.UndoTimeout)
	defer cancel()
	if err := endChildren(ctx, r.deps, r.deps.Journal.Children()); err != nil {
		return []string{"settings of an earlier run are not restored: " + err.Error()}
	}
	restores, err := r.deps.Journal.Restore(ctx)
	back := 0
	for _, res := range restores {
		switch res.State {
		case RestorePending:
			warnings = append(warnings, pendingText(res))
		case RestoreForeign:
			warnings = append(warnings, foreignText(res))
		case Restored, RestoreUntouched:
			back++
		case RestoreGone:
		}
	}
	if len(restores) > 0 {
		warnings = append(warnings, fmt.Sprintf("%d of %d settings of an earlier run put back", back, len(restores)))
	}
	if err != nil {
		warnings = append(warnings, "restore settings of an earlier run: "+err.Error())
	}
	return warnings
}

// resumeAt chooses where a run that died goes on. A backup that only lacked
// its verification gets it; anything earlier is given up, and what it changed
// is undone.
func resumeAt(run *Run) {
	if run.Step == StepVerify || run.Step.undoes() && run.Verdict != "" {
		return
	}
	run.conclude(policy.RunInterrupted, policy.ReasonDied, "brctl ended in step "+string(run.Step))
	run.Step = StepEnd
}
