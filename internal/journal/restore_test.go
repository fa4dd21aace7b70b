package journal_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/journal"
	"github.com/brctl/brctl/pkg/policy"
)

// fakeCluster is TiKV instances and PD in memory: values can be read and set.
// It does not check ranges and keeps no files; what goes wrong is told by its
// hooks.
type fakeCluster struct {
	id     uint64
	values map[policy.SettingKey]string
	stores []policy.Store

	before func() // called first by each method; may be nil
	pdErr  error
	// read and set may change what happens to one setting; nil = as it should.
	read func(policy.SettingKey) error
	set  func(policy.Setting) policy.SetResult // zero State: as it should
	sent []string                              // what arrived, in order
}

func newFakeCluster(stores ...uint64) *fakeCluster {
	c := &fakeCluster{id: conn().ClusterID, values: map[policy.SettingKey]string{}}
	for _, id := range stores {
		c.stores = append(c.stores, policy.Store{ID: id, Address: threads(id).Instance, State: policy.StoreUp})
	}
	return c
}

func (c *fakeCluster) called() {
	if c.before != nil {
		c.before()
	}
}

func (c *fakeCluster) Cluster(context.Context) (policy.Cluster, error) {
	c.called()
	return policy.Cluster{ID: c.id, Stores: c.stores}, c.pdErr
}

func (c *fakeCluster) Read(_ context.Context, keys []policy.SettingKey) []policy.Reading {
	c.called()
	var out []policy.Reading
	for _, k := range keys {
		r := policy.Reading{SettingKey: k}
		if c.read != nil {
			r.Err = c.read(k)
		}
		if r.Err == nil {
			r.Value, r.Known = c.values[k], true
		}
		out = append(out, r)
	}
	return out
}

func (c *fakeCluster) Apply(_ context.Context, settings []policy.Setting) []policy.SetResult {
	c.called()
	var out []policy.SetResult
	for _, s := range settings {
		c.sent = append(c.sent, s.String())
		r := policy.SetResult{}
		if c.set != nil {
			r = c.set(s)
		}
		r.Setting = s
		if r.State == "" || r.State == policy.SetNotPersisted {
			c.values[s.SettingKey] = s.Want
		}
		if r.State == "" {
			r.State, r.Got = policy.SetApplied, s.Want
		}
		out = append(out, r)
	}
	return out
}

// override journals and sets num-threads of stores, whose old value is ten
// times their id, to 4.
func (c *fakeCluster) override(t *testing.T, j *journal.Journal, stores ...uint64) {
	t.Helper()
	must(t, j.Connect(conn()))
	for _, id := range stores {
		must(t, j.Intend("run", []journal.Entry{entry(id, old(id), "4")}))
		c.values[threads(id).SettingKey] = "4"
	}
}

func old(store uint64) string { return fmt.Sprint(store * 10) }

func (c *fakeCluster) restore(ctx context.Context, j *journal.Journal) journal.Result {
	return j.Restore(ctx, journal.RestoreOptions{Settings: c, Topology: c, Same: same})
}

// outcome is a result without what every test would repeat.
func outcome(r journal.Result) map[uint64]string {
	out := map[uint64]string{}
	for _, s := range r.Settings {
		out[s.StoreID] = string(s.State)
		if s.Message != "" {
			out[s.StoreID] += ": " + s.Message
		}
	}
	return out
}

func TestDifferentOldValuesAllComeBack(t *testing.T) {
	c := newFakeCluster(1, 2, 3)
	j := mustOpen(t, journalPath(t))
	c.override(t, j, 1, 2, 3)
	r := c.restore(t.Context(), j)
	want := map[uint64]string{1: "restored", 2: "restored", 3: "restored"}
	if diff := cmp.Diff(want, outcome(r)); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if !r.Complete() || r.Err != nil || len(j.Pending()) != 0 {
		t.Errorf("complete %v, err %v, pending %v", r.Complete(), r.Err, j.Pending())
	}
	for id := range uint64(3) {
		if got := c.values[threads(id+1).SettingKey]; got != old(id+1) {
			t.Errorf("store %d has %s, want %s", id+1, got, old(id+1))
		}
	}
	if got := r.Settings[1]; got.Old != "20" || got.Set != "4" {
		t.Errorf("reported old %s and set %s, want 20 and 4", got.Old, got.Set)
	}
}

func TestEachSettingIsJudgedByItself(t *testing.T) {
	c := newFakeCluster(1, 2, 3)
	j := mustOpen(t, journalPath(t))
	c.override(t, j, 1, 2, 3, 4)
	c.values[threads(1).SettingKey] = "10" // put back by somebody
	c.values[threads(2).SettingKey] = "6"  // changed by somebody
	want := map[uint64]string{
		1: "restored",
		2: "foreign: it has 6, which is neither its old value 20 nor one of ours",
		3: "restored",
		4: "gone: PD no longer knows store 4",
	}
	if diff := cmp.Diff(want, outcome(c.restore(t.Context(), j))); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{threads(1).String() + " = 10", threads(3).String() + " = 30"}, c.sent); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func TestAMovedStoreIsRestoredAtItsNewAddress(t *testing.T) {
	c := newFakeCluster(1, 2)
	j := mustOpen(t, journalPath(t))
	c.override(t, j, 1)
	moved := policy.SettingKey{Instance: "moved:20160", Name: policy.ItemNumThreads}
	c.stores[0].Address, c.stores[1].Address = "moved:20160", threads(1).Instance
	c.values[moved] = "4"
	if r := c.restore(t.Context(), j); !r.Complete() || c.values[moved] != "10" {
		t.Errorf("%v, new address has %s, want 10", outcome(r), c.values[moved])
	}
	if got := c.values[threads(1).SettingKey]; got != "4" {
		t.Errorf("the store that took the address was changed to %s", got)
	}
}

// failing is what goes wrong for a while, and what a restore says meanwhile.
type failing struct {
	breakIt func(*fakeCluster)
	while   string
	after   string
}

func failures() map[string]failing {
	set := func(r policy.SetResult) func(*fakeCluster) {
		return func(c *fakeCluster) { c.set = func(policy.Setting) policy.SetResult { return r } }
	}
	refused := policy.SetResult{State: policy.SetRefused, Got: "4", Message: "config can not be changed"}
	unknown := policy.SetResult{State: policy.SetUnknown, Message: "timeout"}
	different := policy.SetResult{State: policy.SetDifferent, Got: "4", Message: "asked 10, got 4"}
	memory := policy.SetResult{State: policy.SetNotPersisted, Message: "no space left"}
	return map[string]failing{
		"the instance does not answer": {
			func(c *fakeCluster) { c.read = func(policy.SettingKey) error { return errors.New("refused") } },
			"pending: the current value is not known: refused", "restored"},
		"PD does not answer": {
			func(c *fakeCluster) { c.pdErr = errors.New("no leader") },
			"pending: the stores of the cluster are not known: no leader", "restored"},
		"PD lists no store": {
			func(c *fakeCluster) { c.stores = nil },
			"pending: the stores of the cluster are not known", "restored"},
		"PD is another cluster's": {
			func(c *fakeCluster) { c.id, c.stores = 5, []policy.Store{{ID: 77, Address: threads(1).Instance}} },
			"pending: PD belongs to cluster 5, the journal to cluster 9223372036854775815", "restored"},
		"SET is refused":             {set(refused), "pending: sent the old value, refused: config can not be changed", "restored"},
		"SET gets no answer":         {set(unknown), "pending: sent the old value, unknown: timeout", "restored"},
		"SET does not show yet":      {set(different), "pending: sent the old value, different: asked 10, got 4", "restored"},
		"the file cannot be written": {set(memory), "pending: put back in memory, but the instance did not write its file: no space left", "restored"},
	}
}

func TestAFailureIsRetriedUntilItIsOver(t *testing.T) {
	for name, f := range failures() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, j := newFakeCluster(1), mustOpen(t, journalPath(t))
				c.override(t, j, 1)
				healthy := *c
				f.breakIt(c)

				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				if diff := cmp.Diff(map[uint64]string{1: f.while}, outcome(c.restore(ctx, j))); diff != "" {
					t.Errorf("while it lasts (-want +got):\n%s", diff)
				}
				if len(j.Pending()) != 1 {
					t.Fatalf("pending %v, want it still owed", j.Pending())
				}

				began := time.Now()
				c.before = func() {
					if time.Since(began) >= 10*time.Minute {
						c.pdErr, c.read, c.set, c.stores, c.id = nil, nil, nil, healthy.stores, healthy.id
					}
				}
				if diff := cmp.Diff(map[uint64]string{1: f.after}, outcome(c.restore(t.Context(), j))); diff != "" {
					t.Errorf("after it (-want +got):\n%s", diff)
				}
				if took := time.Since(began); took < 10*time.Minute || took > 10*time.Minute+15*time.Second {
					t.Errorf("took %v, want to end within one pause of 15s after the failure", took)
				}
				if got := c.values[threads(1).SettingKey]; got != "10" || len(j.Pending()) != 0 {
					t.Errorf("value %s, pending %v, want 10 and nothing", got, j.Pending())
				}
			})
		})
	}
}

// A SET that hangs in a TiKV arrives when the hang ends, however long ago its
// sender gave up. Until an old value has been answered, none is believed.
func TestAValueThatArrivesLateIsPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, j := newFakeCluster(1), mustOpen(t, journalPath(t))
		must(t, j.Connect(conn()))
		must(t, j.Intend("run", []journal.Entry{entry(1, "10", "4")}))
		c.values[threads(1).SettingKey] = "10" // the SET to 4 hangs
		hangsUntil, arrived := time.Now().Add(time.Minute), false
		c.before = func() {
			if !arrived && !time.Now().Before(hangsUntil) {
				c.values[threads(1).SettingKey], arrived = "4", true
			}
		}
		c.set = func(policy.Setting) policy.SetResult {
			if !arrived {
				return policy.SetResult{State: policy.SetUnknown, Message: "timeout"}
			}
			return policy.SetResult{}
		}
		if diff := cmp.Diff(map[uint64]string{1: "restored"}, outcome(c.restore(t.Context(), j))); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
		if got := c.values[threads(1).SettingKey]; got != "10" {
			t.Errorf("the store has %s, want its old 10", got)
		}
		if !arrived {
			t.Error("the restore ended before the hung SET had arrived")
		}
	})
}

func TestAnInstanceThatRefusesToBeSetAndHasItsOldValueIsDone(t *testing.T) {
	c, j := newFakeCluster(1), mustOpen(t, journalPath(t))
	c.override(t, j, 1)
	c.values[threads(1).SettingKey] = "10"
	c.set = func(policy.Setting) policy.SetResult { return policy.SetResult{State: policy.SetRefused, Got: "10"} }
	want := map[uint64]string{1: "unchanged: the instance refuses to be set, and has its old value"}
	if diff := cmp.Diff(want, outcome(c.restore(t.Context(), j))); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestALostAnswerToARestoreThatWorkedIsARestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, j := newFakeCluster(1), mustOpen(t, journalPath(t))
		c.override(t, j, 1)
		c.set = func(s policy.Setting) policy.SetResult {
			if len(c.sent) > 2 {
				return policy.SetResult{}
			}
			c.values[s.SettingKey] = s.Want
			return policy.SetResult{State: policy.SetUnknown, Message: "timeout"}
		}
		want := map[uint64]string{1: "restored"}
		if diff := cmp.Diff(want, outcome(c.restore(t.Context(), j))); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
	})
}

func TestAnOldValueThatTheInstanceReplacesIsPutBackAsFarAsItGoes(t *testing.T) {
	c, j := newFakeCluster(1), mustOpen(t, journalPath(t))
	c.override(t, j, 1)
	c.set = func(policy.Setting) policy.SetResult { return policy.SetResult{State: policy.SetDifferent, Got: "7"} }
	want := map[uint64]string{1: "restored: the instance accepted 10 and uses 7"}
	if diff := cmp.Diff(want, outcome(c.restore(t.Context(), j))); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestAFileThatWasNotWrittenIsRememberedAcrossOurDeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := journalPath(t)
		c, j := newFakeCluster(1), mustOpen(t, path)
		c.override(t, j, 1)
		c.set = func(policy.Setting) policy.SetResult { return policy.SetResult{State: policy.SetNotPersisted} }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c.restore(ctx, j)
		sent := len(c.sent)

		j = reopen(t, j, path)
		c.set = nil
		want := map[uint64]string{1: "restored"}
		if diff := cmp.Diff(want, outcome(c.restore(t.Context(), j))); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
		if len(c.sent) != sent+1 {
			t.Errorf("sent %d times after reopening, want once", len(c.sent)-sent)
		}
	})
}

func TestAFullDiskDoesNotKeepSettingsFromComingBack(t *testing.T) {
	path := journalPath(t)
	full := false
	c, j := newFakeCluster(1, 2), mustOpen(t, path, journal.WithFaults(t, thatFills(&full)))
	c.override(t, j, 1, 2)
	full = true
	r := c.restore(t.Context(), j)
	if !r.Complete() || !errors.Is(r.Err, syscall.ENOSPC) || c.values[threads(2).SettingKey] != "20" {
		t.Errorf("complete %v, err %v, values %v", r.Complete(), r.Err, c.values)
	}
	j = reopen(t, j, path)
	want := map[uint64]string{1: "restored", 2: "restored"}
	if diff := cmp.Diff(want, outcome(c.restore(t.Context(), j))); diff != "" {
		t.Errorf("second restore (-want +got):\n%s", diff)
	}
}

// TestARestoreKilledAnywhereIsFinishedByTheNext ends a restore at its every
// step, opens the journal again and restores.
func TestARestoreKilledAnywhereIsFinishedByTheNext(t *testing.T) {
	steps := 0
	for killAt := 1; ; killAt++ {
		path := journalPath(t)
		c := newFakeCluster(1, 2, 3)
		step := 0
		die := func() {
			if step++; step == killAt {
				panic("killed")
			}
		}
		j := mustOpen(t, path, journal.WithHook(func(string) { die() }))
		quiet := killAt
		killAt = -1 // not while the run itself sets its values
		c.override(t, j, 1, 2, 3)
		step, killAt = 0, quiet
		c.values[threads(3).SettingKey] = "30"
		c.read = func(policy.SettingKey) error { die(); return nil }
		c.set = func(s policy.Setting) policy.SetResult {
			die()
			c.values[s.SettingKey] = s.Want
			die()
			return policy.SetResult{}
		}
		killed := restoreUntilKilled(t, c, j)
		c.read, c.set, killAt = nil, nil, quiet
		must(t, j.Close())
		if r := c.restore(t.Context(), mustOpen(t, path)); !r.Complete() {
			t.Fatalf("killed at step %d: %v", killAt, outcome(r))
		}
		for _, id := range []uint64{1, 2, 3} {
			if got := c.values[threads(id).SettingKey]; got != old(id) {
				t.Fatalf("killed at step %d: store %d has %s, want %s", killAt, id, got, old(id))
			}
		}
		if !killed {
			break
		}
		steps++
	}
	// 3 reads, 3 sets with a step before and after each, 1 record of ends.
	if steps != 10 {
		t.Errorf("killed at %d steps, want 10", steps)
	}
}

func restoreUntilKilled(t *testing.T, c *fakeCluster, j *journal.Journal) (killed bool) {
	t.Helper()
	defer func() { killed = recover() != nil }()
	c.restore(t.Context(), j)
	return false
}
