package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// plan decides how the backup runs and freezes the engine's invocation.
func (r *Runner) plan(ctx context.Context, run *Run) error {
	plan, err := policy.MakePlan(policy.PlanInput{Cluster: r.cluster, BRVersion: r.version, Options: r.req.Options})
	if unmet, ok := errors.AsType[*policy.UnmetError](err); ok {
		return &stepError{Verdict: policy.RunSkipped, Reason: policy.ReasonBudget, Err: fmt.Errorf("plan: %w", unmet)}
	}
	if err != nil {
		return because(policy.ReasonPlan, "plan: %w", err)
	}
	run.Plan = &plan
	for _, w := range plan.Warnings {
		run.warn(w)
	}
	inv, err := r.deps.Engine.Prepare(run)
	if err != nil {
		return because(policy.ReasonEngine, "prepare: %w", err)
	}
	run.Invocation = &inv
	r.note(ctx, run, "planned", fmt.Sprintf("%d threads per TiKV, concurrency %d, %s, forecast %s",
		plan.NumThreads, plan.Concurrency, plan.Compression, plan.Forecast.Duration.Round(time.Second)), nil)
	return nil
}

// apply writes every old value into the journal, then sets the new ones and
// reads them back.
func (r *Runner) apply(ctx context.Context, run *Run) error {
	if err := r.checkLease(ctx); err != nil {
		return err
	}
	return r.applySettings(ctx, run, run.Plan.Settings)
}

func (r *Runner) applySettings(ctx context.Context, run *Run, settings []policy.Setting) error {
	changes, err := r.readOld(ctx, run, settings)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		return nil
	}
	r.deps.Reached("before_journal")
	if err := r.deps.Journal.Intend(run.ID, changes); err != nil {
		return because(policy.ReasonInternal, "journal settings: %w", err)
	}
	r.deps.Reached("after_journal")
	run.Settings = mergeChanges(run.Settings, changes)
	if err := r.deps.Records.Save(ctx, run); err != nil {
		return because(policy.ReasonInternal, "record settings: %w", err)
	}
	wanted := make([]policy.Setting, 0, len(changes))
	for _, c := range changes {
		wanted = append(wanted, policy.Setting{SettingKey: c.SettingKey, StoreID: c.StoreID, Want: c.Set})
	}
	return r.judge(ctx, run, wanted, r.deps.Settings.Apply(ctx, wanted))
}

// readOld returns the changes that are needed: settings whose value differs
// from the wanted one. A value that cannot be read cannot be put back either,
// so that it is not changed at all.
func (r *Runner) readOld(ctx context.Context, run *Run, settings []policy.Setting) ([]SettingChange, error) {
	keys := make([]policy.SettingKey, len(settings))
	for i, s := range settings {
		keys[i] = s.SettingKey
	}
	readings := make(map[policy.SettingKey]policy.Reading, len(keys))
	for _, reading := range r.deps.Settings.Read(ctx, keys) {
		readings[reading.SettingKey] = reading
	}
	var changes []SettingChange
	var unread []string
	for _, s := range settings {
		reading := readings[s.SettingKey]
		if !reading.Known {
			unread = append(unread, fmt.Sprintf("%s (%v)", s.SettingKey, reading.Err))
			continue
		}
		if r.deps.Same(reading.Value, s.Want) && !r.changed(run, s.SettingKey) {
			continue
		}
		changes = append(changes, SettingChange{
			SettingKey: s.SettingKey, StoreID: s.StoreID, Old: reading.Value, Set: s.Want, Restored: RestorePending,
		})
	}
	if len(unread) > 0 {
		return nil, because(policy.ReasonSettings, "read settings before changing them: no value of %s", few(unread))
	}
	return changes, nil
}

func (r *Runner) changed(run *Run, key policy.SettingKey) bool {
	for _, c := range run.Settings {
		if c.SettingKey == key {
			return true
		}
	}
	return false
}

// mergeChanges adds changes; a setting that the run changed before keeps its
// first old value.
func mergeChanges(have, more []SettingChange) []SettingChange {
	at := make(map[policy.SettingKey]int, len(have))
	for i, c := range have {
		at[c.SettingKey] = i
	}
	for _, c := range more {
		if i, ok := at[c.SettingKey]; ok {
			have[i].Set = c.Set
			continue
		}
		have = append(have, c)
	}
	return have
}

// judge takes the results of SETs into the run. Every setting must have been
// applied: a TiKV that kept more threads than planned would break the forecast.
func (r *Runner) judge(ctx context.Context, run *Run, wanted []policy.Setting, results []policy.SetResult) error {
	byKey := make(map[policy.SettingKey]policy.SetResult, len(wanted))
	for _, s := range wanted { // no result is no answer
		byKey[s.SettingKey] = policy.SetResult{Setting: s, State: policy.SetUnknown, Message: "no result"}
	}
	for _, res := range results {
		byKey[res.SettingKey] = res
	}
	var bad []string
	for _, s := range wanted {
		res := byKey[s.SettingKey]
		switch res.State {
		case policy.SetApplied:
		case policy.SetNotPersisted:
			run.warn(fmt.Sprintf("%s: set, but not written to its configuration file: %s", res.SettingKey, res.Message))
		default:
			bad = append(bad, describeResult(res))
		}
		if res.Got != "" && !r.deps.Same(res.Got, res.Want) {
			if err := r.deps.Journal.Saw(res.SettingKey, res.Got); err != nil {
				return because(policy.ReasonInternal, "journal settings: %w", err)
			}
		}
	}
	for i, c := range run.Settings {
		if res, ok := byKey[c.SettingKey]; ok {
			run.Settings[i].State, run.Settings[i].Message = res.State, res.Message
		}
	}
	if len(bad) > 0 {
		return because(policy.ReasonSettings, "set TiKV settings: %s", few(bad))
	}
	r.note(ctx, run, "settings_applied", fmt.Sprintf("%d settings set and read back", len(wanted)), nil)
	return nil
}

func describeResult(res policy.SetResult) string {
	switch res.State {
	case policy.SetDifferent:
		return fmt.Sprintf("%s: asked for %s, got %s", res.SettingKey, res.Want, res.Got)
	case policy.SetRefused:
		return fmt.Sprintf("%s: refused: %s", res.SettingKey, res.Message)
	default:
		return fmt.Sprintf("%s: no answer, it may have been set: %s", res.SettingKey, res.Message)
	}
}
