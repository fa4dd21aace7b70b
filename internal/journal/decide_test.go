package journal_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/journal"
	"github.com/brctl/brctl/pkg/policy"
)

// same treats "1m" and "60s" as one value, as TiKV does.
func same(a, b string) bool {
	norm := func(s string) string {
		if s == "1m" {
			return "60s"
		}
		return s
	}
	return norm(a) == norm(b)
}

func TestDecideOverwritesOnlyWhatIsOurs(t *testing.T) {
	present := journal.Home{Fate: journal.FatePresent, Instance: "a:1"}
	p := journal.Pending{Key: threads(1), Old: "60s", Ours: []string{"10s", "5s"}}
	known := func(v string) policy.Reading { return policy.Reading{Value: v, Known: true} }
	tests := map[string]struct {
		pending journal.Pending
		home    journal.Home
		reading policy.Reading
		want    journal.Decision
	}{
		"the value sent last": {p, present, known("5s"),
			journal.Decision{Action: journal.ActRestore, Why: "it has a value of ours"}},
		"an earlier value of ours": {p, present, known("10s"),
			journal.Decision{Action: journal.ActRestore, Why: "it has a value of ours"}},
		"the old value": {p, present, known("60s"),
			journal.Decision{Action: journal.ActRestore, Why: "it has its old value; a value sent without an answer may still arrive"}},
		"the old value in other words": {p, present, known("1m"),
			journal.Decision{Action: journal.ActRestore, Why: "it has its old value; a value sent without an answer may still arrive"}},
		"the old value, which is one of ours as well": {
			journal.Pending{Key: threads(1), Old: "8", Ours: []string{"8"}}, present, known("8"),
			journal.Decision{Action: journal.ActRestore, Why: "it has its old value; a value sent without an answer may still arrive"}},
		"somebody else's value": {p, present, known("30s"),
			journal.Decision{Action: journal.ActLeave, Why: "it has 30s, which is neither its old value 60s nor one of ours"}},
		"an empty value is a value": {p, present, known(""),
			journal.Decision{Action: journal.ActLeave, Why: "it has , which is neither its old value 60s nor one of ours"}},
		"no reading": {p, present, policy.Reading{Value: "5s", Err: errors.New("connection refused")},
			journal.Decision{Action: journal.ActRetry, Why: "the current value is not known: connection refused"}},
		"no reading and no reason": {p, present, policy.Reading{},
			journal.Decision{Action: journal.ActRetry, Why: "the current value is not known: the instance did not answer"}},
		"the store is gone, whatever its address answers": {p, journal.Home{Fate: journal.FateGone, Why: "store 1 is a tombstone"}, known("5s"),
			journal.Decision{Action: journal.ActForget, Why: "store 1 is a tombstone"}},
		"the store is not known": {p, journal.Home{Fate: journal.FateUnknown, Why: "PD is away"}, known("5s"),
			journal.Decision{Action: journal.ActRetry, Why: "PD is away"}},
		"no home at all": {p, journal.Home{}, known("5s"), journal.Decision{Action: journal.ActRetry}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := journal.Decide(tt.pending, tt.home, tt.reading, same)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLocateFollowsAStoreAndNotAnAddress(t *testing.T) {
	p := journal.Pending{Key: threads(1)}
	here := p.Instance
	store := func(id uint64, address string, state policy.StoreState) policy.Store {
		return policy.Store{ID: id, Address: address, State: state}
	}
	tests := map[string]struct {
		store  uint64
		stores []policy.Store
		want   journal.Home
	}{
		"where it was": {1, []policy.Store{store(1, here, policy.StoreUp)}, journal.Home{Fate: journal.FatePresent, Instance: here}},
		"being scaled in": {1, []policy.Store{store(1, here, policy.StoreOffline)},
			journal.Home{Fate: journal.FatePresent, Instance: here}},
		"moved": {1, []policy.Store{store(1, "new:20160", policy.StoreUp)},
			journal.Home{Fate: journal.FatePresent, Instance: "new:20160"}},
		"moved, its address taken": {1, []policy.Store{store(2, here, policy.StoreUp), store(1, "new:20160", policy.StoreUp)},
			journal.Home{Fate: journal.FatePresent, Instance: "new:20160"}},
		"a tombstone": {1, []policy.Store{store(1, here, policy.StoreTombstone)},
			journal.Home{Fate: journal.FateGone, Why: "store 1 is a tombstone"}},
		"a tombstone, its address taken": {1, []policy.Store{store(1, here, policy.StoreTombstone), store(9, here, policy.StoreUp)},
			journal.Home{Fate: journal.FateGone, Why: "store 1 is a tombstone; " + here + " is store 9 now"}},
		"forgotten, its address taken": {1, []policy.Store{store(9, here, policy.StoreUp)},
			journal.Home{Fate: journal.FateGone, Why: "PD no longer knows store 1; " + here + " is store 9 now"}},
		"forgotten, its address taken by another tombstone": {1, []policy.Store{store(9, here, policy.StoreTombstone)},
			journal.Home{Fate: journal.FateGone, Why: "PD no longer knows store 1"}},
		"no stores known": {1, nil, journal.Home{Fate: journal.FateUnknown, Why: "the stores of the cluster are not known"}},
		"no store at all": {0, []policy.Store{store(9, "other:1", policy.StoreUp)},
			journal.Home{Fate: journal.FatePresent, Instance: here}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := p
			p.StoreID = tt.store
			if diff := cmp.Diff(tt.want, journal.Locate(p, tt.stores)); diff != "" {
				t.Errorf("home (-want +got):\n%s", diff)
			}
		})
	}
}
