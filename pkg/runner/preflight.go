package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// check is one question of the preflight. All are asked, so that an operator
// sees every obstacle at once.
type check struct {
	name   string
	reason policy.RunReason
	ask    func(ctx context.Context, run *Run) error
}

func (r *Runner) checks() []check {
	return []check{
		{"pd", policy.ReasonUnavailable, r.checkCluster},
		{"tidb", policy.ReasonUnavailable, r.checkGrants},
		{"engine", policy.ReasonVersion, r.checkEngine},
		{"target", policy.ReasonStorage, r.checkTarget},
		{"earlier run", policy.ReasonConflictingWork, r.checkChildren},
		{"other backup", policy.ReasonConflictingWork, r.checkOtherBackup},
	}
}

func (r *Runner) preflight(ctx context.Context, run *Run) error {
	var problems []string
	var first policy.RunReason
	for _, c := range r.checks() {
		err := c.ask(ctx, run)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			continue
		}
		if first == "" {
			first = c.reason
			var step *stepError
			if errors.As(err, &step) {
				first = step.Reason
			}
		}
		problems = append(problems, c.name+": "+err.Error())
	}
	if len(problems) == 0 {
		return nil
	}
	verdict := policy.RunFailed
	if first == policy.ReasonConflictingWork {
		verdict = policy.RunSkipped // it passes by itself
	}
	return &stepError{Verdict: verdict, Reason: first, Err: fmt.Errorf("preflight: %s", strings.Join(problems, "; "))}
}

func (r *Runner) checkCluster(ctx context.Context, run *Run) error {
	cluster, err := r.deps.Topology.Cluster(ctx)
	if err != nil {
		return err
	}
	r.cluster = cluster
	for _, w := range cluster.Warnings {
		run.warn(w)
	}
	stores := cluster.BackupStores()
	silent := 0
	for _, s := range stores {
		if s.Silent { // Cluster.Warnings tells which
			silent++
		}
	}
	if len(stores) == 0 {
		return because(policy.ReasonStoreUnhealthy, "PD lists no TiKV store that could be backed up")
	}
	if silent == len(stores) {
		return because(policy.ReasonStoreUnhealthy, "none of the %d TiKV stores sends heartbeats", silent)
	}
	return nil
}

func (r *Runner) checkGrants(ctx context.Context, _ *Run) error {
	return r.deps.Settings.CheckGrants(ctx)
}

func (r *Runner) checkEngine(ctx context.Context, run *Run) error {
	version, err := r.deps.Engine.Version(ctx)
	if err != nil {
		return err
	}
	r.version = version
	var stores []string
	for _, s := range r.cluster.BackupStores() {
		stores = append(stores, s.Version)
	}
	if _, warning := policy.CapabilityFor(version); warning != "" {
		run.warn(warning)
	}
	return policy.CheckCompatible(version, stores)
}

func (r *Runner) checkTarget(ctx context.Context, run *Run) error {
	target, err := r.deps.Engine.Inspect(ctx, run.StorageURL)
	if err != nil {
		return err
	}
	for _, w := range target.Warnings {
		run.warn(w)
	}
	if !target.Usable {
		return fmt.Errorf("%s already holds a backup or a part of one (%s)", run.StorageURL, target.State)
	}
	if need := r.replicaBytes(); target.FreeBytes > 0 && target.FreeBytes < need {
		run.warn(fmt.Sprintf("%s is free at the target, one replica of the data has %s", policy.FormatBytes(target.FreeBytes), policy.FormatBytes(need)))
	}
	return nil
}

// replicaBytes is about what a backup writes: one replica of what PD counts.
func (r *Runner) replicaBytes() uint64 {
	if r.cluster.Replicas <= 0 {
		return 0
	}
	return r.cluster.UsedBytes() / uint64(r.cluster.Replicas)
}

// checkChildren refuses while a br of an earlier run may live: it could not be
// ended, and a second one beside it is what br forbids.
func (r *Runner) checkChildren(_ context.Context, _ *Run) error {
	if left := r.deps.Journal.Children(); len(left) > 0 {
		return because(policy.ReasonConflictingWork, "br of an earlier run may be alive (pid %d): it was not ended", left[0].PID)
	}
	return nil
}

const (
	// busyProbe is long enough for thread CPU seconds to move, and short
	// enough not to be felt.
	busyProbe = 2 * time.Second
	// busyShare is the CPU, in cores, above which backup threads count as
	// working for someone; idle pools use none.
	busyShare = 0.2
)

// checkOtherBackup looks for backup threads that work although this run has
// not begun: another br, or SQL's BACKUP. A leftover service safepoint proves
// nothing, since a dead br leaves one for over an hour.
func (r *Runner) checkOtherBackup(ctx context.Context, run *Run) error {
	stores := r.cluster.BackupStores()
	before := r.gauges(ctx, stores)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(busyProbe):
	}
	after := r.gauges(ctx, stores)
	var busy, unseen []string
	for _, s := range stores {
		a, okA := before[s.ID]
		b, okB := after[s.ID]
		switch {
		case !okA || !okB || !a.CPUKnown || !b.CPUKnown:
			unseen = append(unseen, s.Address)
		case b.backupCores(a) > busyShare:
			busy = append(busy, s.Address)
		}
	}
	if len(unseen) > 0 {
		run.warn("no status port could be read of " + few(unseen) + ": CPU and applied threads of it are unknown")
	}
	if len(busy) > 0 {
		return fmt.Errorf("backup threads are working on %s: another backup is running", few(busy))
	}
	return nil
}
