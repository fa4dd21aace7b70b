package runner

import (
	"context"
	"fmt"

	"github.com/brctl/brctl/pkg/policy"
)

// Recover finishes what an earlier life of brctl left of a cluster: for each
// unfinished run it ends the engine's process, puts settings back and records
// the run as interrupted; then it restores whatever else the journal holds. It
// must be called while no other brctl uses the same state directory.
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
		if err := New(deps, req).Run(ctx, run); err != nil {
			return warnings, err
		}
		warnings = append(warnings, fmt.Sprintf("run %s was interrupted in an earlier life and is closed", run.ID))
		warnings = append(warnings, run.Warnings...)
	}
	restores, err := deps.Journal.Restore(ctx)
	for _, res := range restores {
		if res.State == RestorePending {
			warnings = append(warnings, fmt.Sprintf("%s is still changed, was %s: %s", res.SettingKey, res.Old, res.Message))
		}
	}
	if err != nil {
		warnings = append(warnings, "restore settings of an earlier run: "+err.Error())
	}
	return warnings, nil
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
