package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// Topology tells what the cluster looks like now. A part that cannot be read is
// a warning in the cluster, an unreachable PD an error.
type Topology interface {
	Cluster(ctx context.Context) (policy.Cluster, error)
	// Stores is the cheap part of Cluster: PD's list only.
	Stores(ctx context.Context) ([]policy.Store, error)
}

// Settings reads and changes TiKV's settings through SQL.
type Settings interface {
	// CheckGrants returns an error that names each missing grant.
	CheckGrants(ctx context.Context) error
	Read(ctx context.Context, keys []policy.SettingKey) []policy.Reading
	// Apply sets each setting and reads it back; one result per setting.
	Apply(ctx context.Context, settings []policy.Setting) []policy.SetResult
}

// Gauge is what one store's status port says of its backup threads.
type Gauge struct {
	SoftLimit      int // threads that may run; valid if SoftLimitKnown
	SoftLimitKnown bool
	CPUKnown       bool
	BackupCPU      float64   // CPU seconds of backup threads since they started
	ProcessCPU     float64   // CPU seconds of the whole process, whole seconds
	StartedAt      time.Time // of the process
	At             time.Time // when it answered
}

// backupCores is the CPU, in cores, that backup threads used since an earlier
// look; 0 where a restart or a lost thread makes it unknown.
func (g Gauge) backupCores(before Gauge) float64 {
	return g.cores(before, g.BackupCPU-before.BackupCPU)
}

// processCores is the same for the whole process.
func (g Gauge) processCores(before Gauge) float64 {
	return g.cores(before, g.ProcessCPU-before.ProcessCPU)
}

func (g Gauge) cores(before Gauge, used float64) float64 {
	seconds := g.At.Sub(before.At).Seconds()
	if seconds <= 0 || used < 0 || !g.StartedAt.Equal(before.StartedAt) {
		return 0
	}
	return used / seconds
}

// Gauges reads a store's status port.
type Gauges interface {
	Gauge(ctx context.Context, store policy.Store) (Gauge, error)
}

// SafePoints reads PD's GC safepoints, and ends the hold of a run that is given
// up.
type SafePoints interface {
	// SafePoints returns PD's list, and PD's clock right after it.
	SafePoints(ctx context.Context) (policy.SafePoints, time.Time, error)
	// Release removes a service safepoint; one that is not there is no error.
	Release(ctx context.Context, serviceID string) error
}

// Protection says whether the data that a backup reads is still there and sure
// to stay. Texts are for people, "" where there is nothing to say.
type Protection struct {
	Lost    string // why the backup cannot be completed any more
	Unheld  string // why its own hold on GC does not stand
	Blocker string // who else holds GC back
}

// Protect judges a backup by PD's list of safepoints. It is pure.
type Protect func(sp policy.SafePoints, pdNow time.Time, backupTS policy.TS, serviceID string) Protection

// HeldError says that another run has the cluster's lease.
type HeldError struct {
	RunID string
	Host  string
	Since time.Time
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("run %s on %s has the cluster since %s", e.RunID, e.Host, e.Since.UTC().Format(time.RFC3339))
}

// Lease is the right to back up one cluster.
type Lease interface {
	// Lost is closed when the lease is no longer ours.
	Lost() <-chan struct{}
	// Check asks the cluster whether the lease is still ours.
	Check(ctx context.Context) error
	Token() int64
	Release(ctx context.Context) error
}

// Leaser takes the lease of a cluster without waiting. It returns a *HeldError
// when another run has it.
type Leaser func(ctx context.Context, run *Run) (Lease, error)

// Journal remembers, across any death of ours, what was changed and which
// child may live.
type Journal interface {
	// Intend writes the old and new values down before they are set. Where a
	// restore is pending already, the old value known there is kept.
	Intend(runID string, changes []SettingChange) error
	// Saw adds a value that an instance uses because of us.
	Saw(key policy.SettingKey, got string) error
	ChildStarted(runID string, ref policy.ChildRef) error
	ChildGone(ref policy.ChildRef) error
	// Children lists the processes that started and are not known to be gone,
	// those of earlier lives of ours included.
	Children() []policy.ChildRef
	// Restore puts back every pending setting that still has a value of ours,
	// retrying until ctx ends. It returns one result per pending setting.
	Restore(ctx context.Context) ([]Restore, error)
}

// Target is what is found at the place a backup is to be written to.
type Target struct {
	Usable    bool   // a new backup may be written there
	State     string // what is there, in a word
	FreeBytes uint64 // 0 when unknown
	Warnings  []string
}

// Engine is the program that makes backups.
type Engine interface {
	Version(ctx context.Context) (string, error)
	// Inspect checks that the place can be written to, and tells its state.
	Inspect(ctx context.Context, storageURL string) (Target, error)
	Prepare(run *Run) (policy.Invocation, error)
	// Start launches an attempt and calls started with its process before it
	// returns; an error of started ends the process.
	Start(ctx context.Context, inv policy.Invocation, started func(policy.ChildRef) error) (Attempt, error)
	// Recover ends a process that an earlier life of ours started; it returns
	// once nothing of it is left.
	Recover(ctx context.Context, ref policy.ChildRef) error
	// Hold returns the service id under which an engine that is gone holds GC,
	// "" when it left no trace of one.
	Hold(ctx context.Context, inv policy.Invocation) (serviceID string, err error)
	// Find returns the engines that still run for a place, known or not: a death
	// of ours between starting one and writing it down leaves one that no book
	// knows.
	Find(ctx context.Context, storageURL string) ([]policy.ChildRef, error)
	// Confirm reads the finished backup back. An error that wraps
	// ErrEmptyBackup means that it is readable and holds nothing.
	Confirm(ctx context.Context, storageURL string) (policy.Artifact, error)
}

// ErrEmptyBackup marks a readable backup without any data.
var ErrEmptyBackup = errors.New("backup holds no data")

// Attempt is one running engine.
type Attempt interface {
	// Events is closed when the attempt is over.
	Events() <-chan policy.AttemptEvent
	// Stop asks the engine to end gracefully, then forces it; it does not wait.
	// Stopping twice, or what is over, does nothing.
	Stop()
	// Wait returns once the engine and all its children are gone.
	Wait() policy.Outcome
}

// Records keeps runs and their events. Save and Event return only when the
// record is durable.
type Records interface {
	Save(ctx context.Context, run *Run) error
	Event(ctx context.Context, runID string, event policy.Event) error
	// Unfinished lists the runs of a cluster that have no final status.
	Unfinished(ctx context.Context, clusterID uint64) ([]*Run, error)
}

// Status is what is known of a run at one moment, for people who watch.
type Status struct {
	Run      Run
	Progress policy.Progress
	Rate     float64 // MB/s of source data, by the engine's progress; 0 when unknown
	ETA      time.Duration
	GCHold   time.Duration
	Hosts    []HostStatus
	Note     string // set when something worth a line happened
}

// HostStatus is one host's part in a backup.
type HostStatus struct {
	Host      string
	Silent    int     // stores that did not answer at the last look
	Threads   int     // soft limits of its stores, added up
	Known     bool    // false: no store of it could be read
	CPUKnown  bool    // false until two samples of a store of it exist
	BackupCPU float64 // cores that backup threads use
	TotalCPU  float64 // cores that its TiKVs use, backup included
	Cores     float64
}

// Deps is all that a Runner needs of the world.
type Deps struct {
	Topology   Topology
	Settings   Settings
	Gauges     Gauges
	SafePoints SafePoints
	Protect    Protect
	Leaser     Leaser
	Journal    Journal
	Engine     Engine
	Records    Records
	Same       func(a, b string) bool // whether two values of a setting mean the same; nil: equal texts
	Now        func() time.Time
	Observe    func(Status)       // may be nil
	Reached    func(point string) // named points, where tests end the process; may be nil
}
