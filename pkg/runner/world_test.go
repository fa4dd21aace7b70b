package runner_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/runner"
)

const (
	clusterID   = 7
	gaugeTick   = 3 * time.Second  // until a store's soft limit follows num-threads
	stopGrace   = 2 * time.Second  // in which a stopped engine ends
	undoTimeout = 30 * time.Second // of every run in these tests
)

// world is everything that outlives brctl, in memory: a cluster with its
// settings, the engine's processes, the lease, the journal and the records. All
// fakes act on it, and it keeps one log of their effects in the order in which
// they happened.
//
// It has no files, no network and no clock of its own: tests run it in a
// synctest bubble.
type world struct {
	mu      sync.Mutex
	cluster policy.Cluster
	stores  map[uint64]*fakeStore
	gc      policy.TS
	version string // of the engine

	leaseOf   string // id of the run that has the lease
	pending   map[policy.SettingKey]*owed
	children  []policy.ChildRef
	records   map[string][]byte // run id → its last saved form
	events    map[string][]policy.Event
	processes []*process
	artifacts map[string]policy.Artifact // by storage URL
	hold      string                     // the service safepoint that br's log names
	services  []policy.ServiceSafePoint
	released  []string // service safepoints that were removed

	same       func(a, b string) bool // runner.Deps.Same
	script     []act                  // of the next attempt
	outcome    policy.Outcome
	confirmErr error
	leftover   policy.Artifact // what is odd about what a finished attempt writes

	original   map[policy.SettingKey]string
	log        []effect
	violations []string
}

// effect is one call that a fake got, or one part of it. Its op and n name it
// uniquely within a life.
type effect struct {
	op     string
	n      int // the n-th of this op, from 1
	detail string
}

func (e effect) name() string { return fmt.Sprintf("%s#%d", e.op, e.n) }

// newWorld returns a healthy cluster of two hosts with two TiKVs each, all with
// different settings, and beside them a TiFlash and a tombstone that a backup
// has no business with.
func newWorld(t *testing.T) *world {
	t.Helper()
	c, err := policy.OfflineCluster(policy.OfflineSpec{Bytes: 3 * policy.TiB, Hosts: 2, TiKVPerHost: 2, VCores: 16, Version: "v8.5.0"})
	if err != nil {
		t.Fatal(err)
	}
	c.ID = clusterID
	now := time.Now()
	w := &world{
		stores: map[uint64]*fakeStore{}, version: "v8.5.0",
		pending: map[policy.SettingKey]*owed{}, records: map[string][]byte{}, events: map[string][]policy.Event{},
		artifacts: map[string]policy.Artifact{}, original: map[policy.SettingKey]string{},
		services: []policy.ServiceSafePoint{{ServiceID: "br-0001", ExpiredAt: math.MaxInt64, SafePoint: backupTS() - 1}},
		script:   steadyScript(), outcome: policy.Outcome{Class: policy.OutcomeSuccess},
	}
	for i := range c.Stores {
		s := &c.Stores[i]
		s.StatusAddress, s.StartedAt, s.LastHeartbeat, s.LeaderCount = s.Address+"0", now.Add(-time.Hour), now, 100
		w.addStore(*s, map[string]string{
			policy.ItemNumThreads:      []string{"8", "7", "6", "3"}[i],
			policy.ItemBatchSize:       fmt.Sprint(8 + i),
			policy.ItemRefreshInterval: fmt.Sprintf("%ds", 60+i),
		})
	}
	c.Stores = append(c.Stores,
		policy.Store{ID: 90, Address: "host1:3930", Host: "host1", State: policy.StoreUp, TiFlash: true, Version: "v8.5.0"},
		policy.Store{ID: 91, Address: "host9:20160", Host: "host9", State: policy.StoreTombstone})
	w.cluster = c
	return w
}

func (w *world) addStore(s policy.Store, settings map[string]string) {
	w.stores[s.ID] = newFakeStore(s, settings)
	for name, value := range settings {
		w.original[policy.SettingKey{Instance: s.Address, Name: name}] = value
	}
}

// store is the cluster's own entry, to be changed by a test.
func (w *world) store(id uint64) *policy.Store {
	i := slices.IndexFunc(w.cluster.Stores, func(s policy.Store) bool { return s.ID == id })
	return &w.cluster.Stores[i]
}

func (w *world) at(instance string) *fakeStore {
	for _, s := range w.stores {
		if s.Address == instance {
			return s
		}
	}
	return nil
}

// do changes the world while others act on it.
func (w *world) do(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *world) violate(format string, args ...any) {
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

// settings returns what every instance uses now.
func (w *world) settings() map[policy.SettingKey]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[policy.SettingKey]string{}
	for _, s := range w.stores {
		for name, value := range s.settings {
			out[policy.SettingKey{Instance: s.Address, Name: name}] = value
		}
	}
	return out
}

// saved returns the last saved form of a run, or nil.
func (w *world) saved(id string) *runner.Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	return decodeRun(w.records[id])
}

func decodeRun(data []byte) *runner.Run {
	if data == nil {
		return nil
	}
	run := new(runner.Run)
	if err := json.Unmarshal(data, run); err != nil {
		panic(err)
	}
	return run
}

func (w *world) alive() []*process {
	var out []*process
	for _, p := range w.processes {
		if p.alive {
			out = append(out, p)
		}
	}
	return out
}

// done returns the effects so far as "op detail", without those that only look
// or tell: what is left is what changed the world.
func (w *world) done() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, e := range w.log {
		if onlyLooks(e.op) {
			continue
		}
		out = append(out, strings.TrimSpace(e.op+" "+e.detail))
	}
	return out
}

func onlyLooks(op string) bool {
	return op == "observe" || op == "point" || op == "settings.read" || op == "settings.grants" || op == "records.event" ||
		op == "engine.find" || strings.HasPrefix(op, "topology.") || strings.HasPrefix(op, "gauges.") || strings.HasPrefix(op, "safepoints.")
}

func sortedKeys[V any](m map[policy.SettingKey]V) []policy.SettingKey {
	return slices.SortedFunc(maps.Keys(m), func(a, b policy.SettingKey) int { return strings.Compare(a.String(), b.String()) })
}

// contains reports whether one of texts contains part.
func contains(texts []string, part string) bool {
	return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, part) })
}
