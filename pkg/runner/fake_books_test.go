package runner_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/runner"
)

// owed is a pending setting of the fake journal.
type owed struct {
	runID string
	old   string
	ours  []string // every value that was sent, or used because of one that was
	sent  bool     // a restore has sent the old value
}

// fakeJournal keeps the promises of the real journal in memory. Where the
// calling life dies, what was confirmed stays in the world.
type fakeJournal struct{ *life }

func (f fakeJournal) Intend(runID string, changes []runner.SettingChange) error {
	if err := f.effect(context.Background(), "journal.intend", runID); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range changes {
		p := f.pending[c.SettingKey]
		if p == nil {
			p = &owed{old: c.Old}
			f.pending[c.SettingKey] = p
		}
		p.runID, p.ours = runID, append(p.ours, c.Set)
	}
	return nil
}

func (f fakeJournal) Saw(key policy.SettingKey, got string) error {
	if err := f.effect(context.Background(), "journal.saw", key.String()+" "+got); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending[key].ours = append(f.pending[key].ours, got)
	return nil
}

func (f fakeJournal) ChildStarted(_ string, ref policy.ChildRef) error {
	if err := f.effect(context.Background(), "journal.child_started", ""); err != nil {
		return err
	}
	f.do(func() { f.children = append(f.children, ref) })
	return nil
}

func (f fakeJournal) ChildGone(ref policy.ChildRef) error {
	if err := f.effect(context.Background(), "journal.child_gone", ""); err != nil {
		return err
	}
	f.do(func() { f.children = slices.DeleteFunc(f.children, func(c policy.ChildRef) bool { return c == ref }) })
	return nil
}

func (f fakeJournal) Children() []policy.ChildRef {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.children)
}

// Restore goes over what is pending once a second until nothing is, or ctx
// ends. Each setting that is put back is an effect of its own.
func (f fakeJournal) Restore(ctx context.Context) ([]runner.Restore, error) {
	if err := f.effect(ctx, "journal.restore", ""); err != nil {
		return nil, err
	}
	var keys []policy.SettingKey
	f.do(func() { keys = sortedKeys(f.pending) })
	results := make([]runner.Restore, len(keys))
	for {
		open := 0
		for i, k := range keys {
			if results[i].State == "" || results[i].State == runner.RestorePending {
				results[i] = f.restoreOne(k)
			}
			if results[i].State == runner.RestorePending {
				open++
			}
		}
		if open == 0 {
			return results, nil
		}
		select {
		case <-ctx.Done():
			return results, nil
		case <-f.died:
			return results, nil
		case <-time.After(time.Second):
		}
	}
}

func (f fakeJournal) restoreOne(k policy.SettingKey) runner.Restore {
	err := f.effect(context.Background(), "journal.put_back", k.String())
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.pending[k]
	res := runner.Restore{SettingKey: k, Old: p.old, Set: p.ours[len(p.ours)-1], State: runner.RestorePending, Message: "connection refused"}
	if n := len(f.alive()); n > 0 {
		f.violate("%s is put back while %d engines live", k, n)
	}
	s := f.at(k.Instance)
	switch {
	case err != nil:
		res.Message = err.Error()
		return res
	case s == nil:
		res.State, res.Message = runner.RestoreGone, "PD no longer knows the store"
	case s.down:
		return res
	case s.settings[k.Name] == p.old:
		res.State, res.Message = runner.RestoreUntouched, ""
		if p.sent {
			res.State = runner.Restored
		}
	case !slices.Contains(p.ours, s.settings[k.Name]):
		res.State, res.Message = runner.RestoreForeign, "it has "+s.settings[k.Name]
	default:
		s.settings[k.Name], p.sent = p.old, true
		s.softDue = time.Now().Add(gaugeTick)
		res.State, res.Message = runner.Restored, ""
	}
	delete(f.pending, k)
	return res
}

// fakeRecords keeps runs as the JSON they would be stored as, so that nothing
// of a dead life is shared with the next one.
type fakeRecords struct{ *life }

func (f fakeRecords) Save(ctx context.Context, run *runner.Run) error {
	if err := f.effect(ctx, "records.save", strings.TrimSpace(string(run.Step)+" "+final(run.Status))); err != nil {
		return err
	}
	data, err := json.Marshal(run)
	if err != nil {
		return err
	}
	f.do(func() { f.records[run.ID] = data })
	return nil
}

func final(s policy.RunStatus) string {
	if s.Final() {
		return string(s)
	}
	return ""
}

func (f fakeRecords) Event(ctx context.Context, runID string, event policy.Event) error {
	if err := f.effect(ctx, "records.event", event.Kind); err != nil {
		return err
	}
	f.do(func() { f.events[runID] = append(f.events[runID], event) })
	return nil
}

func (f fakeRecords) Unfinished(ctx context.Context, id uint64) ([]*runner.Run, error) {
	if err := f.effect(ctx, "records.unfinished", ""); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*runner.Run
	for _, data := range f.records {
		if run := decodeRun(data); run.ClusterID == id && !run.Status.Final() {
			out = append(out, run)
		}
	}
	slices.SortFunc(out, func(a, b *runner.Run) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}
