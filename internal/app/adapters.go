package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/brctl/brctl/internal/cluster"
	"github.com/brctl/brctl/internal/crashpoint"
	"github.com/brctl/brctl/internal/engine/br"
	"github.com/brctl/brctl/internal/journal"
	"github.com/brctl/brctl/internal/pd"
	"github.com/brctl/brctl/pkg/gcwatch"
	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/runner"
	"github.com/brctl/brctl/pkg/tidbcfg"
)

func (s *session) hardware(ctx context.Context) (map[string]cluster.Hardware, []string, error) {
	found, warnings, err := s.sql.Hardware(ctx)
	out := make(map[string]cluster.Hardware, len(found))
	for instance, h := range found {
		out[instance] = cluster.Hardware(h)
	}
	return out, warnings, err
}

// Gauge implements runner.Gauges.
func (s *session) Gauge(ctx context.Context, store policy.Store) (runner.Gauge, error) {
	sample, err := s.status.Store(ctx, store.StatusAddress)
	if err != nil {
		return runner.Gauge{}, err
	}
	return runner.Gauge{
		SoftLimit: int(sample.SoftLimit.V), SoftLimitKnown: sample.SoftLimit.Known,
		CPUKnown:  sample.WorkerSeconds().Known && sample.ProcessCPU.Known,
		BackupCPU: sample.WorkerSeconds().V, ProcessCPU: sample.ProcessCPU.V, StartedAt: sample.StartedAt, At: sample.At,
	}, nil
}

// accessDenied is MySQL's code for a wrong user or password.
const accessDenied = 1045

// settings is the SQL side with the places where tests end the process.
type settings struct {
	sql   *tidbcfg.Client
	place string // name of the place after each SET
}

// CheckGrants implements runner.Settings. A missing grant is a reason of its
// own: no retry and no other endpoint will help.
func (s settings) CheckGrants(ctx context.Context) error {
	err := s.sql.CheckGrants(ctx)
	var missing *tidbcfg.MissingGrantError
	if errors.As(err, &missing) {
		return runner.Because(policy.ReasonPrivilege, err)
	}
	var refused *mysql.MySQLError
	if errors.As(err, &refused) && refused.Number == accessDenied {
		return runner.Because(policy.ReasonCredentials, err)
	}
	return err
}

func (s settings) Read(ctx context.Context, keys []policy.SettingKey) []policy.Reading {
	return s.sql.Read(ctx, keys)
}

// Apply sets all at once, except in builds where a test may end the process
// after each.
func (s settings) Apply(ctx context.Context, wanted []policy.Setting) []policy.SetResult {
	if !crashpoint.Enabled {
		return s.sql.Apply(ctx, wanted)
	}
	var out []policy.SetResult
	for _, one := range wanted {
		out = append(out, s.sql.Apply(ctx, []policy.Setting{one})...)
		crashpoint.Hit(s.place)
	}
	return out
}

// engine is br as the runner wants it.
type engine struct {
	br    *br.Engine
	base  string // configured storage URL, below which runs make their own
	grace time.Duration
	spec  func(run *runner.Run) br.Spec
}

func (e engine) Version(ctx context.Context) (string, error) { return e.br.Version(ctx) }

func (e engine) Inspect(ctx context.Context, url string) (runner.Target, error) {
	t, err := e.br.Target(ctx, e.base, url)
	usable := t.State == br.TargetEmpty || t.State == br.TargetOnlyLock
	target := runner.Target{Usable: usable, State: string(t.State), FreeBytes: t.FreeBytes}
	if t.OnRootFS {
		target.Warnings = append(target.Warnings, e.base+" lies on the root file system of this host: is the backup's mount missing?")
	}
	return target, err
}

func (e engine) Prepare(run *runner.Run) (policy.Invocation, error) { return e.br.Prepare(e.spec(run)) }

func (e engine) Start(ctx context.Context, inv policy.Invocation, started func(policy.ChildRef) error) (runner.Attempt, error) {
	// The attempt is stopped through Stop alone: a context that ends would
	// otherwise stop it a second time, and br takes the second signal as an
	// order to drop everything.
	a, err := e.br.Start(context.WithoutCancel(ctx), inv, br.Launch{OnStarted: started})
	if err != nil {
		return nil, err
	}
	return attempt{Attempt: a, grace: e.grace}, nil
}

func (e engine) Recover(ctx context.Context, ref policy.ChildRef) error {
	return e.br.Recover(ctx, ref, e.grace)
}

func (e engine) Find(ctx context.Context, url string) ([]policy.ChildRef, error) {
	return e.br.Find(ctx, url)
}

func (e engine) Hold(ctx context.Context, inv policy.Invocation) (string, error) {
	return e.br.Hold(ctx, inv)
}

func (e engine) Confirm(ctx context.Context, url string) (policy.Artifact, error) {
	a, err := e.br.Confirm(ctx, url)
	if errors.Is(err, br.ErrEmptyBackup) {
		err = fmt.Errorf("%w: %s", runner.ErrEmptyBackup, url)
	}
	return a, err
}

type attempt struct {
	*br.Attempt
	grace time.Duration
}

func (a attempt) Stop() { a.Attempt.Stop(a.grace) }

// books is the settings journal as the runner wants it.
type books struct {
	journal *journal.Journal
	restore journal.RestoreOptions
	stores  map[policy.SettingKey]uint64 // store id of what this run has changed
}

func (b books) Intend(runID string, changes []runner.SettingChange) error {
	entries := make([]journal.Entry, len(changes))
	for i, c := range changes {
		b.stores[c.SettingKey] = c.StoreID
		entries[i] = journal.Entry{Key: journal.Key{SettingKey: c.SettingKey, StoreID: c.StoreID}, Old: c.Old, New: c.Set}
	}
	return b.journal.Intend(runID, entries)
}

func (b books) Saw(key policy.SettingKey, got string) error {
	return b.journal.SawValue(journal.Key{SettingKey: key, StoreID: b.stores[key]}, got)
}

func (b books) ChildStarted(_ string, ref policy.ChildRef) error { return b.journal.ChildStarted(ref) }
func (b books) ChildGone(ref policy.ChildRef) error              { return b.journal.ChildGone(ref) }
func (b books) Children() []policy.ChildRef                      { return b.journal.Contents().Children }

func (b books) Restore(ctx context.Context) ([]runner.Restore, error) {
	result := b.journal.Restore(ctx, b.restore)
	out := make([]runner.Restore, len(result.Settings))
	for i, r := range result.Settings {
		out[i] = runner.Restore{SettingKey: r.SettingKey, Old: r.Old, Set: r.Set, State: runner.RestoreState(r.State), Message: r.Message}
	}
	return out, result.Err
}

// leaser takes the cluster's lease in PD's etcd. One that this very state
// directory holds belongs to a brctl that is dead, since its lock is ours now:
// it is taken over instead of waited for.
func (s *session) leaser(ttl time.Duration, owner pd.LeaseInfo) runner.Leaser {
	return func(ctx context.Context, run *runner.Run) (runner.Lease, error) {
		owner.RunID, owner.Since = run.ID, time.Now().UTC()
		lease, err := s.pd.Acquire(ctx, owner, ttl)
		var held *pd.HeldError
		if errors.As(err, &held) {
			lease, err = s.pd.TakeOver(ctx, held, owner, ttl)
		}
		if errors.As(err, &held) {
			return nil, &runner.HeldError{RunID: held.Info.RunID, Host: held.Info.Owner, Since: held.Info.Since}
		}
		if err != nil {
			return nil, err
		}
		return leaseOf{lease}, nil
	}
}

type leaseOf struct{ *pd.Lease }

func (l leaseOf) Lost() <-chan struct{} { return l.Done() }
func (l leaseOf) Token() int64          { return l.FenceToken() }

// safePoints is PD's list of holds, with gcwatch's rule of what may be removed.
type safePoints struct{ *pd.Client }

// SafePoints implements runner.SafePoints. The clock is PD's, read after the
// list: a GC safepoint of this moment must not look impossible.
func (s safePoints) SafePoints(ctx context.Context) (policy.SafePoints, time.Time, error) {
	sp, err := s.Client.SafePoints(ctx)
	if err != nil {
		return sp, time.Time{}, err
	}
	now, err := s.TSO(ctx)
	if err != nil {
		return sp, time.Time{}, err
	}
	return sp, now.Time(), nil
}

// protect is gcwatch's judgement in the runner's words.
func protect(sp policy.SafePoints, pdNow time.Time, backupTS policy.TS, serviceID string) runner.Protection {
	p := gcwatch.CheckBackup(sp, pdNow, backupTS, serviceID)
	out := runner.Protection{Unheld: p.Unheld, Blocker: p.Blocker}
	if p.Lost {
		out.Lost = p.Reason
	}
	return out
}

func (s safePoints) Release(ctx context.Context, id string) error {
	return gcwatch.Release(ctx, s.Client, id)
}

// noLease is for clusters whose etcd cannot be reached.
type noLease struct{}

func (noLease) Lost() <-chan struct{}         { return nil }
func (noLease) Check(context.Context) error   { return nil }
func (noLease) Token() int64                  { return 0 }
func (noLease) Release(context.Context) error { return nil }

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}
