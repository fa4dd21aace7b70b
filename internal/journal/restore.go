package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// Settings reads and changes the settings of instances, many at once.
type Settings interface {
	// Read returns a reading for each key it can say anything about; a missing
	// one counts as unknown.
	Read(ctx context.Context, keys []policy.SettingKey) []policy.Reading
	// Apply sends each value to its instance, reads it back and says what became
	// of it; a missing result counts as unknown.
	Apply(ctx context.Context, settings []policy.Setting) []policy.SetResult
}

// Topology tells which stores PD knows, tombstones included: only ID and Stores
// of the cluster are looked at.
type Topology interface {
	Cluster(ctx context.Context) (policy.Cluster, error)
}

// RestoreOptions are what a restore needs besides the journal.
type RestoreOptions struct {
	Settings Settings
	Topology Topology
	Same     func(a, b string) bool // whether two values of a setting mean the same

	// Tell is called after each round that leaves something owed, with what and
	// why, for people who wait; nil: not.
	Tell func(text string)

	CallTimeout time.Duration // of one Cluster, Read or Apply; 0 = 1 min
	FirstPause  time.Duration // between the first two rounds, doubled each time; 0 = 500 ms
	LongestWait time.Duration // between two rounds; 0 = 15 s
}

// RestoreState is what a restore came to for one setting.
type RestoreState string

// The states of a restore: how the setting was closed, or that it was not.
const (
	RestoreDone      = RestoreState(ClosedRestored)
	RestoreUnchanged = RestoreState(ClosedUnchanged)
	RestoreForeign   = RestoreState(ClosedForeign)
	RestoreGone      = RestoreState(ClosedGone)
	RestorePending   = RestoreState("pending") // still owed
)

// Restored is what became of one pending setting.
type Restored struct {
	Key
	Old     string
	Set     string // the value of ours that was sent last
	State   RestoreState
	Message string
}

// Result is what became of all that was pending.
type Result struct {
	Settings []Restored // as Pending orders them
	// Err is why the journal could not record an end. The settings are as their
	// State says; the next restore finds them unchanged and closes them.
	Err error
}

// Complete reports whether nothing is owed any more.
func (r Result) Complete() bool {
	for _, s := range r.Settings {
		if s.State == RestorePending {
			return false
		}
	}
	return true
}

// Restore puts back whatever is pending and returns when nothing is, or when
// ctx ends; what is still owed then stays in the journal for the next one. It
// goes in rounds: locate the stores, read the values, decide, send, record. It
// may be ended at any point and begun again, since each decision is made from
// what the instances have.
//
// Restoring is mostly done after something was cancelled, so the caller passes
// a context that outlives that: context.WithoutCancel and a timeout of its own.
// Nothing of the backup may run any more (Contents.Children, and the run's
// own).
func (j *Journal) Restore(ctx context.Context, o RestoreOptions) Result {
	o = o.withDefaults()
	r := &restorer{j: j, o: o, open: map[Key]bool{}, index: map[Key]int{}}
	for i, p := range j.Pending() {
		r.open[p.Key], r.index[p.Key] = true, i
		r.result.Settings = append(r.result.Settings,
			Restored{Key: p.Key, Old: p.Old, Set: p.Sent, State: RestorePending, Message: "not tried yet"})
	}
	for pause := o.FirstPause; len(r.open) > 0; pause = min(2*pause, o.LongestWait) {
		r.round(ctx)
		if len(r.open) == 0 {
			break
		}
		r.tell()
		if !sleep(ctx, pause) {
			break
		}
	}
	return r.result
}

// tell says how much is owed, with the first reason.
func (r *restorer) tell() {
	if r.o.Tell == nil {
		return
	}
	for _, s := range r.result.Settings {
		if s.State == RestorePending {
			r.o.Tell(fmt.Sprintf("%d of %d settings are not put back yet, trying again: %s: %s",
				len(r.open), len(r.result.Settings), s.SettingKey, s.Message))
			return
		}
	}
}

func (o RestoreOptions) withDefaults() RestoreOptions {
	if o.CallTimeout == 0 {
		o.CallTimeout = time.Minute
	}
	if o.FirstPause == 0 {
		o.FirstPause = 500 * time.Millisecond
	}
	if o.LongestWait == 0 {
		o.LongestWait = 15 * time.Second
	}
	return o
}

// restorer is one Restore at work.
type restorer struct {
	j      *Journal
	o      RestoreOptions
	open   map[Key]bool // still owed
	index  map[Key]int  // into result.Settings
	result Result
}

// owed is a pending setting with where it is now.
type owed struct {
	Pending
	home Home
}

// at is the setting's name at its present address.
func (w owed) at() policy.SettingKey {
	return policy.SettingKey{Instance: w.home.Instance, Name: w.Name}
}

func (r *restorer) round(ctx context.Context) {
	work := r.locate(ctx)
	readings := r.read(ctx, work)
	var send []owed
	closed := map[Closing][]Key{}
	for _, w := range work {
		d := Decide(w.Pending, w.home, readings[w.at()], r.o.Same)
		switch d.Action {
		case ActRestore:
			send = append(send, w)
		case ActLeave:
			r.close(closed, ClosedForeign, w.Key, d.Why)
		case ActForget:
			r.close(closed, ClosedGone, w.Key, d.Why)
		case ActRetry:
			r.say(w.Key, RestorePending, d.Why)
		}
	}
	r.record(closed)
	r.send(ctx, send)
}

// locate returns what is still owed, each with its home.
func (r *restorer) locate(ctx context.Context) []owed {
	stores, why := r.stores(ctx)
	var out []owed
	for _, p := range r.j.Pending() {
		if !r.open[p.Key] {
			continue
		}
		home := Locate(p, stores)
		if why != "" {
			home.Why = why
		}
		out = append(out, owed{p, home})
	}
	return out
}

// stores returns the stores of the cluster that the journal belongs to, or why
// they are not known. On another cluster every store of ours would seem to be
// gone, and the journal would be emptied for nothing.
func (r *restorer) stores(ctx context.Context) ([]policy.Store, string) {
	ctx, cancel := context.WithTimeout(ctx, r.o.CallTimeout)
	defer cancel()
	c, err := r.o.Topology.Cluster(ctx)
	if err != nil {
		return nil, "the stores of the cluster are not known: " + err.Error()
	}
	if want := r.j.Contents().Conn.ClusterID; want != 0 && c.ID != want {
		return nil, fmt.Sprintf("PD belongs to cluster %d, the journal to cluster %d", c.ID, want)
	}
	return c.Stores, ""
}

func (r *restorer) read(ctx context.Context, work []owed) map[policy.SettingKey]policy.Reading {
	out := map[policy.SettingKey]policy.Reading{}
	var keys []policy.SettingKey
	for _, w := range work {
		if w.home.Fate == FatePresent {
			keys = append(keys, w.at())
		}
	}
	if len(keys) == 0 {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, r.o.CallTimeout)
	defer cancel()
	for _, reading := range r.o.Settings.Read(ctx, keys) {
		out[reading.SettingKey] = reading
	}
	return out
}

// send puts old values back and records what came of it.
func (r *restorer) send(ctx context.Context, work []owed) {
	if len(work) == 0 {
		return
	}
	settings := make([]policy.Setting, len(work))
	for i, w := range work {
		settings[i] = policy.Setting{SettingKey: w.at(), StoreID: w.StoreID, Want: w.Old}
	}
	ctx, cancel := context.WithTimeout(ctx, r.o.CallTimeout)
	defer cancel()
	results := map[policy.SettingKey]policy.SetResult{}
	for _, res := range r.o.Settings.Apply(ctx, settings) {
		results[res.SettingKey] = res
	}
	r.judge(work, results)
}

func (r *restorer) judge(work []owed, results map[policy.SettingKey]policy.SetResult) {
	closed := map[Closing][]Key{}
	for _, w := range work {
		res := results[w.at()]
		switch {
		case res.State == policy.SetApplied:
			r.close(closed, ClosedRestored, w.Key, "")
		case res.State == policy.SetNotPersisted:
			r.say(w.Key, RestorePending, "put back in memory, but the instance did not write its file: "+res.Message)
		case res.State == policy.SetRefused && r.o.Same(res.Got, w.Old):
			r.close(closed, ClosedUnchanged, w.Key, "the instance refuses to be set, and has its old value")
		case res.State == policy.SetDifferent && !r.ours(w.Pending, res.Got):
			r.close(closed, ClosedRestored, w.Key, fmt.Sprintf("the instance accepted %s and uses %s", w.Old, res.Got))
		case res.State == "":
			r.say(w.Key, RestorePending, "no answer to the old value")
		default:
			r.say(w.Key, RestorePending, fmt.Sprintf("sent the old value, %s: %s", res.State, res.Message))
		}
	}
	r.record(closed)
}

func (r *restorer) ours(p Pending, value string) bool {
	for _, v := range p.Ours {
		if r.o.Same(v, value) {
			return true
		}
	}
	return false
}

// close notes that a setting has come to its end and is to be recorded so.
func (r *restorer) close(closed map[Closing][]Key, how Closing, k Key, why string) {
	closed[how] = append(closed[how], k)
	delete(r.open, k)
	r.say(k, RestoreState(how), why)
}

func (r *restorer) record(closed map[Closing][]Key) {
	for _, how := range []Closing{ClosedRestored, ClosedUnchanged, ClosedForeign, ClosedGone} {
		if keys := closed[how]; len(keys) > 0 {
			r.keep(r.j.End(how, keys...))
		}
	}
}

// keep remembers the first thing that the journal could not record.
func (r *restorer) keep(err error) {
	if err != nil && r.result.Err == nil {
		r.result.Err = fmt.Errorf("record restored settings: %w", err)
	}
}

func (r *restorer) say(k Key, state RestoreState, message string) {
	s := &r.result.Settings[r.index[k]]
	s.State, s.Message = state, message
}

// sleep waits for d and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
