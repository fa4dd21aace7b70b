package runner_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/brctl/brctl/pkg/gcwatch"
	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/runner"
)

// fakeStore is a TiKV: settings that can be changed, and a soft limit that
// follows num-threads at its next tick. It copies no data.
type fakeStore struct {
	policy.Store
	settings map[string]string
	sets     []policy.SetState // what becomes of the next SETs; SetApplied when used up
	down     bool              // neither SQL nor its status port answers

	soft     int
	softDue  time.Time
	noSoft   bool // too old for tikv_backup_softlimit
	busy     bool // its backup threads work for a stranger
	lastRead time.Time
	cpu      float64
}

func newFakeStore(s policy.Store, settings map[string]string) *fakeStore {
	soft, _ := strconv.Atoi(settings[policy.ItemNumThreads])
	return &fakeStore{Store: s, settings: settings, soft: soft, lastRead: time.Now()}
}

// set answers one SET as TiKV would, judged by reading back.
func (s *fakeStore) set(want policy.Setting) policy.SetResult {
	res := policy.SetResult{Setting: want, State: policy.SetApplied, Got: want.Want}
	if len(s.sets) > 0 {
		res.State, s.sets = s.sets[0], s.sets[1:]
	}
	if s.down {
		res.State = policy.SetUnknown
	}
	switch res.State {
	case policy.SetRefused:
		res.Got, res.Message = s.settings[want.Name], "cannot be changed"
		return res
	case policy.SetDifferent:
		res.Got, res.Message = "5", "TiKV's own default"
	case policy.SetNotPersisted:
		res.Message = "config changed, but failed to persist change due to err: Os { code: 28, … }"
	case policy.SetUnknown:
		res.Got, res.Message = "", "connection refused"
	case policy.SetApplied:
	}
	if s.down {
		return res
	}
	s.settings[want.Name] = want.Want
	if res.State == policy.SetDifferent {
		s.settings[want.Name] = res.Got
	}
	s.softDue = time.Now().Add(gaugeTick)
	return res
}

// gauge reads the status port; threads in use count as CPU seconds.
func (s *fakeStore) gauge(working bool) runner.Gauge {
	now := time.Now()
	if threads, err := strconv.Atoi(s.settings[policy.ItemNumThreads]); err == nil && !now.Before(s.softDue) {
		s.soft = threads
	}
	if working {
		s.cpu += float64(s.soft) * now.Sub(s.lastRead).Seconds()
	}
	s.lastRead = now
	return runner.Gauge{
		SoftLimit: s.soft, SoftLimitKnown: !s.noSoft, CPUKnown: true, At: now,
		BackupCPU: s.cpu, ProcessCPU: s.cpu + 3*now.Sub(s.StartedAt).Seconds(), StartedAt: s.StartedAt,
	}
}

// restart gives the store a new start time and an empty CPU count. Its settings
// survive, since TiKV wrote them into its file, unless they were lost.
func (s *fakeStore) restart(lost map[string]string) {
	s.StartedAt, s.cpu, s.lastRead = time.Now(), 0, time.Now()
	maps.Copy(s.settings, lost)
}

type fakeTopology struct{ *life }

func (f fakeTopology) Cluster(ctx context.Context) (policy.Cluster, error) {
	if err := f.effect(ctx, "topology.cluster", ""); err != nil {
		return policy.Cluster{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.cluster
	c.Stores = slices.Clone(c.Stores)
	return c, nil
}

// Stores knows no cores: PD's list has none.
func (f fakeTopology) Stores(ctx context.Context) ([]policy.Store, error) {
	if err := f.effect(ctx, "topology.stores", ""); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	stores := slices.Clone(f.cluster.Stores)
	for i := range stores {
		stores[i].Cores = 0
	}
	return stores, nil
}

type fakeSettings struct{ *life }

func (f fakeSettings) CheckGrants(ctx context.Context) error {
	return f.effect(ctx, "settings.grants", "")
}

func (f fakeSettings) Read(ctx context.Context, keys []policy.SettingKey) []policy.Reading {
	err := f.effect(ctx, "settings.read", "")
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]policy.Reading, 0, len(keys))
	for _, k := range keys {
		s := f.at(k.Instance)
		switch {
		case err != nil:
			out = append(out, policy.Reading{SettingKey: k, Err: err})
		case s == nil || s.down:
			out = append(out, policy.Reading{SettingKey: k, Err: errors.New("connection refused")})
		default:
			out = append(out, policy.Reading{SettingKey: k, Value: s.settings[k.Name], Known: true})
		}
	}
	return out
}

// Apply sends one SET after the other; each is an effect of its own. A fault
// before a SET loses the answer and not the SET, which is the worse half of
// "unknown".
func (f fakeSettings) Apply(ctx context.Context, settings []policy.Setting) []policy.SetResult {
	out := make([]policy.SetResult, 0, len(settings))
	for _, want := range settings {
		err := f.effect(ctx, "settings.set", want.String())
		f.mu.Lock()
		f.checkSet(want)
		res := policy.SetResult{Setting: want, State: policy.SetUnknown, Message: "no such instance"}
		if s := f.at(want.Instance); s != nil {
			res = s.set(want)
		}
		if err != nil {
			res.State, res.Got, res.Message = policy.SetUnknown, "", err.Error()
		}
		f.mu.Unlock()
		out = append(out, res)
	}
	return out
}

// checkSet holds the rule that makes every SET undoable: the journal knows it
// before the instance does.
func (f fakeSettings) checkSet(want policy.Setting) {
	p := f.pending[want.SettingKey]
	if p == nil || !slices.Contains(p.ours, want.Want) {
		f.violate("%s is set before the journal knows it", want)
	}
}

type fakeGauges struct{ *life }

func (f fakeGauges) Gauge(ctx context.Context, store policy.Store) (runner.Gauge, error) {
	if err := f.effect(ctx, "gauges.read", store.Address); err != nil {
		return runner.Gauge{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stores[store.ID]
	if s == nil || s.down {
		return runner.Gauge{}, errors.New("connection refused")
	}
	return s.gauge(s.busy || len(f.alive()) > 0), nil
}

type fakeSafePoints struct{ *life }

func (f fakeSafePoints) SafePoints(ctx context.Context) (policy.SafePoints, time.Time, error) {
	if err := f.effect(ctx, "safepoints.read", ""); err != nil {
		return policy.SafePoints{}, time.Time{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return policy.SafePoints{GC: f.gc, Services: f.services}, time.Now(), nil
}

func (f fakeSafePoints) Release(ctx context.Context, id string) error {
	if err := f.effect(ctx, "safepoints.release", id); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.released = append(f.released, id)
	return nil
}

// protect is the real judgement: it is pure.
func protect(sp policy.SafePoints, pdNow time.Time, backupTS policy.TS, serviceID string) runner.Protection {
	p := gcwatch.CheckBackup(sp, pdNow, backupTS, serviceID)
	return runner.Protection{Lost: p.Reason, Unheld: p.Unheld, Blocker: p.Blocker}
}

// takeLease is the fake Leaser. It has no TTL: a test ends the lease of a dead
// life by hand.
func (l *life) takeLease(ctx context.Context, run *runner.Run) (runner.Lease, error) {
	if err := l.effect(ctx, "lease.take", ""); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaseOf != "" {
		return nil, &runner.HeldError{RunID: l.leaseOf, Host: "other.example", Since: time.Now()}
	}
	l.leaseOf = run.ID
	return fakeLease{l, run.ID}, nil
}

type fakeLease struct {
	*life
	id string
}

func (f fakeLease) Lost() <-chan struct{} { return f.lost }
func (f fakeLease) Token() int64          { return 42 }

func (f fakeLease) Check(ctx context.Context) error {
	if err := f.effect(ctx, "lease.check", ""); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leaseOf != f.id {
		return errors.New("the lease belongs to " + f.leaseOf)
	}
	return nil
}

func (f fakeLease) Release(ctx context.Context) error {
	if err := f.effect(ctx, "lease.release", ""); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leaseOf == f.id {
		f.leaseOf = ""
	}
	return nil
}
