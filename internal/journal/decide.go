package journal

import (
	"fmt"
	"slices"

	"github.com/brctl/brctl/pkg/policy"
)

// Fate is what became of the store that a pending setting was changed on.
type Fate string

// The fates of a store.
const (
	FateUnknown Fate = "unknown" // PD did not say
	FatePresent Fate = "present" // up or offline: it still has the setting
	FateGone    Fate = "gone"    // a tombstone, or PD has forgotten it
)

// Home is where a pending setting is to be found now.
type Home struct {
	Fate     Fate
	Instance string // address to read from and write to, when present
	Why      string // for people
}

// Locate finds the store of a pending setting among all the stores that PD
// knows, tombstones included. A store is followed to a new address; an address
// that another store has taken is not its own any more. No stores at all is
// taken for an answer that is missing, not for a cluster without stores.
func Locate(p Pending, stores []policy.Store) Home {
	if len(stores) == 0 {
		return Home{Fate: FateUnknown, Why: "the stores of the cluster are not known"}
	}
	if p.StoreID == 0 {
		return Home{Fate: FatePresent, Instance: p.Instance}
	}
	i := slices.IndexFunc(stores, func(s policy.Store) bool { return s.ID == p.StoreID })
	switch {
	case i < 0:
		return Home{Fate: FateGone, Why: fmt.Sprintf("PD no longer knows store %d%s", p.StoreID, successor(p, stores))}
	case stores[i].State == policy.StoreTombstone:
		return Home{Fate: FateGone, Why: fmt.Sprintf("store %d is a tombstone%s", p.StoreID, successor(p, stores))}
	}
	return Home{Fate: FatePresent, Instance: stores[i].Address}
}

// successor names the store that has p's address now.
func successor(p Pending, stores []policy.Store) string {
	for _, s := range stores {
		if s.Address == p.Instance && s.ID != p.StoreID && s.State != policy.StoreTombstone {
			return fmt.Sprintf("; %s is store %d now", p.Instance, s.ID)
		}
	}
	return ""
}

// Action is what is to be done about a pending setting.
type Action string

// The actions.
const (
	ActRestore Action = "restore"       // send the old value
	ActLeave   Action = "leave_foreign" // somebody else's value; ClosedForeign
	ActForget  Action = "close_gone"    // ClosedGone
	ActRetry   Action = "retry"         // not enough is known; ask again
)

// Decision is an action and its reason.
type Decision struct {
	Action Action
	Why    string
}

// Decide says what is to be done about p, given where its store is and what the
// instance was seen to have. Values are compared by same, because TiKV prints
// "60s" where "1m" was sent.
//
// Only a value of ours is ever overwritten. The old value is sent even where it
// is found: a SET that was never answered may still be on its way (TiDB waits
// for a TiKV without a limit, and so does what we have sent), and the file may
// have another value than the memory that was read. What cannot be known is
// retried and never guessed: neither that a silent store still has our value,
// nor that it has not.
func Decide(p Pending, home Home, reading policy.Reading, same func(a, b string) bool) Decision {
	switch {
	case home.Fate == FateGone:
		return Decision{ActForget, home.Why}
	case home.Fate != FatePresent:
		return Decision{ActRetry, home.Why}
	case !reading.Known:
		return Decision{ActRetry, "the current value is not known: " + readingError(reading)}
	case same(reading.Value, p.Old):
		return Decision{ActRestore, "it has its old value; a value sent without an answer may still arrive"}
	case slices.ContainsFunc(p.Ours, func(v string) bool { return same(reading.Value, v) }):
		return Decision{ActRestore, "it has a value of ours"}
	}
	return Decision{ActLeave, fmt.Sprintf("it has %s, which is neither its old value %s nor one of ours", reading.Value, p.Old)}
}

func readingError(r policy.Reading) string {
	if r.Err == nil {
		return "the instance did not answer"
	}
	return r.Err.Error()
}
