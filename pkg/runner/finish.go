package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/brctl/brctl/pkg/policy"
)

// verify believes in a backup only when the engine said success, its summary
// says so too, and the backup can be read back with data in it.
func (r *Runner) verify(ctx context.Context, run *Run) error {
	if run.Outcome == nil || run.Outcome.Class != policy.OutcomeSuccess || run.Outcome.Summary == nil {
		return because(policy.ReasonEngine, "the engine reported no success")
	}
	artifact, err := r.deps.Engine.Confirm(ctx, run.StorageURL)
	empty := errors.Is(err, ErrEmptyBackup)
	switch {
	case empty && r.req.AllowEmpty:
		run.warn("the backup holds no data (allow_empty)")
	case empty:
		return because(policy.ReasonArtifact, "%w; set allow_empty if that is meant", err)
	case err != nil:
		return because(policy.ReasonArtifact, "read the backup back: %w", err)
	}
	run.Artifact = &artifact
	summary := run.Outcome.Summary
	if summary.BackupTS != 0 && artifact.BackupTS != summary.BackupTS {
		return because(policy.ReasonArtifact, "backupmeta has backup_ts %s, br said %s", artifact.BackupTS, summary.BackupTS)
	}
	if artifact.ClusterID != 0 && run.ClusterID != 0 && artifact.ClusterID != run.ClusterID {
		return because(policy.ReasonArtifact, "backupmeta is of cluster %d, this is %d", artifact.ClusterID, run.ClusterID)
	}
	if len(artifact.MissingStores) > 0 {
		return because(policy.ReasonArtifact, "files of stores %v are listed and not visible here, so that this cannot be restored: is the directory one shared mount?", artifact.MissingStores)
	}
	run.BackupTS = artifact.BackupTS
	run.conclude(policy.RunSucceeded, "", "")
	return nil
}

// end makes certain that nothing of the engine is left before settings go
// back: of what the books know, and of what they could not be told.
func (r *Runner) end(ctx context.Context, run *Run) error {
	refs := children(r.deps.Journal, run)
	if !run.EngineStartedAt.IsZero() {
		found, err := r.deps.Engine.Find(ctx, run.StorageURL)
		if err != nil {
			return fmt.Errorf("look for processes of the backup: %w", err)
		}
		for _, ref := range found {
			if !slices.Contains(refs, ref) {
				refs = append(refs, ref)
			}
		}
	}
	if err := endChildren(ctx, r.deps, refs); err != nil {
		return err
	}
	run.Child = nil
	return r.releaseHold(ctx, run)
}

// releaseHold ends br's hold on GC once br is gone. Of a backup that is given up
// br keeps its service safepoint for over an hour, for a retry that will not
// come; of an empty one it forgets it; of any other it has removed it itself.
// Only an id from our own br, or from what it left at our own path, is removed.
func (r *Runner) releaseHold(ctx context.Context, run *Run) error {
	if run.EngineStartedAt.IsZero() || run.Invocation == nil {
		return nil
	}
	if run.ServiceSafePoint == "" && run.Verdict != policy.RunSucceeded {
		id, err := r.deps.Engine.Hold(ctx, *run.Invocation)
		if err != nil {
			return fmt.Errorf("look for br's service safepoint: %w", err)
		}
		run.ServiceSafePoint = id
	}
	if run.ServiceSafePoint == "" {
		return nil
	}
	if err := r.deps.SafePoints.Release(ctx, run.ServiceSafePoint); err != nil {
		return fmt.Errorf("release br's service safepoint %s, which holds GC for up to 72 minutes: %w", run.ServiceSafePoint, err)
	}
	if run.Verdict != policy.RunSucceeded {
		r.note(ctx, run, "service_safe_point_released", "released service safepoint "+run.ServiceSafePoint, nil)
	}
	run.ServiceSafePoint = ""
	return nil
}

// children lists the processes that may live. The journal and the run differ
// only where a death of ours or a full disk came between the two books.
func children(journal Journal, run *Run) []policy.ChildRef {
	refs := journal.Children()
	if run.Child != nil && !slices.Contains(refs, *run.Child) {
		refs = append(refs, *run.Child)
	}
	return refs
}

func endChildren(ctx context.Context, deps Deps, refs []policy.ChildRef) error {
	for _, ref := range refs {
		if err := deps.Engine.Recover(ctx, ref); err != nil {
			return fmt.Errorf("end the backup process %d: %w", ref.PID, err)
		}
		if err := deps.Journal.ChildGone(ref); err != nil {
			return fmt.Errorf("journal the end of process %d: %w", ref.PID, err)
		}
	}
	return nil
}

// restore puts every setting back. Settings are left changed while the engine
// may still run: with the old, higher thread count it would hurt more.
func (r *Runner) restore(ctx context.Context, run *Run) error {
	if left := children(r.deps.Journal, run); len(left) > 0 {
		return fmt.Errorf("settings are not restored while process %d may live; run: brctl settings restore", left[0].PID)
	}
	if err := r.regainLease(ctx, run); err != nil {
		return err
	}
	r.deps.Reached("before_restore")
	results, err := r.deps.Journal.Restore(ctx)
	back := takeRestores(run, results)
	if err != nil {
		return fmt.Errorf("restore settings: %w; what is pending is kept in the journal: brctl settings restore", err)
	}
	if len(results) > 0 {
		r.note(ctx, run, "settings_restored", fmt.Sprintf("%d of %d settings put back", back, len(results)), nil)
	}
	return nil
}

// takeRestores takes the results into the run and returns how many settings
// have their old value.
func takeRestores(run *Run, results []Restore) (back int) {
	byKey := make(map[policy.SettingKey]Restore, len(results))
	for _, res := range results {
		byKey[res.SettingKey] = res
		if res.State == Restored || res.State == RestoreUntouched {
			back++
		}
	}
	for i, c := range run.Settings {
		res, ok := byKey[c.SettingKey]
		if !ok {
			continue
		}
		delete(byKey, c.SettingKey)
		run.Settings[i].Old, run.Settings[i].Restored = res.Old, res.State
		switch res.State {
		case RestorePending:
			run.warn(pendingText(res))
		case RestoreForeign:
			run.warn(foreignText(res))
		case Restored, RestoreGone, RestoreUntouched:
		}
	}
	for _, res := range results { // owed by an earlier run
		if _, ok := byKey[res.SettingKey]; ok {
			run.Settings = append(run.Settings, SettingChange{
				SettingKey: res.SettingKey, Old: res.Old, Set: res.Set, Restored: res.State, Message: res.Message,
			})
		}
	}
	return back
}

// pendingText says what is owed, and what a person can do.
func pendingText(res Restore) string {
	return fmt.Sprintf("%s may still be %s, was %s: %s; brctl settings restore puts it back", res.SettingKey, res.Set, res.Old, res.Message)
}

func foreignText(res Restore) string {
	return fmt.Sprintf("%s was changed by someone else meanwhile and is left alone: %s", res.SettingKey, res.Message)
}

// record gives the run its final status.
func (r *Runner) record(ctx context.Context, run *Run) error {
	if run.Verdict == "" {
		run.conclude(policy.RunFailed, policy.ReasonInternal, "the run ended without a verdict")
	}
	if run.Verdict != policy.RunSucceeded && !run.EngineStartedAt.IsZero() {
		run.warn("what this run wrote is left at " + run.StorageURL + "; it is no backup and can be deleted")
	}
	run.Status = run.Verdict
	if run.EndedAt.IsZero() {
		run.EndedAt = r.deps.Now()
	}
	r.deps.Reached("before_record")
	if err := r.deps.Records.Save(ctx, run); err != nil {
		return fmt.Errorf("record the end of run %s: %w", run.ID, err)
	}
	if err := r.event(ctx, run, "ended", string(run.Status), map[string]any{"reason": run.Reason, "message": run.Message}); err != nil {
		run.warn("record event: " + err.Error())
	}
	r.deps.Reached("after_record")
	r.observe(run, Status{})
	return nil
}

// releaseLease comes after the run's end is recorded: whoever gets the lease
// next finds nothing of this run left to do.
func (r *Runner) releaseLease(ctx context.Context) error {
	if r.lease == nil {
		return nil
	}
	ctx, cancel := r.detached(ctx, recordTimeout)
	defer cancel()
	lease := r.lease
	r.lease = nil
	return lease.Release(ctx)
}

// regainLease takes the lease again after it was lost, so that settings are not
// put back under a backup that another host has begun meanwhile. Where that
// does not succeed they are left to the journal.
func (r *Runner) regainLease(ctx context.Context, run *Run) error {
	if r.lease == nil {
		return nil
	}
	select {
	case <-r.lease.Lost():
	default:
		return nil
	}
	lease, err := r.deps.Leaser(ctx, run)
	if err != nil {
		return fmt.Errorf("take the cluster's lease again before settings are restored: %w; they are kept in the journal: brctl settings restore", err)
	}
	r.lease, run.FenceToken = lease, lease.Token()
	return nil
}

// checkLease asks whether the cluster is still ours, before a step that
// changes it.
func (r *Runner) checkLease(ctx context.Context) error {
	if r.lease == nil {
		return nil
	}
	err := r.lease.Check(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", errLeaseLost, err)
}
