// Package cluster makes the one description of a cluster's topology that
// planning, admission, control and reports share: PD's stores, grouped into
// hosts, with the cores, region size and number of tables that other sources
// know.
//
// PD must answer, the size of every living store included: a plan stands on their
// sum, and a part of it would look like a smaller cluster. Everything else may be
// missing: it is then unknown (zero) and
// said once in Cluster.Warnings, and never replaced by a default. The package
// keeps nothing between calls and refuses to guess.
package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/brctl/brctl/pkg/policy"
)

const (
	// DefaultTimeout bounds what is read besides PD when Sources.Timeout is
	// zero: time for one slow status port, not for one after the other.
	DefaultTimeout = 15 * time.Second

	// quotaRequests is how many status ports are read at a time: well under a
	// second for 1,000 stores that answer.
	quotaRequests = 64

	// regionSizeTries is how many stores are asked for the region size, which
	// is the same on all of them unless somebody has made a mistake.
	regionSizeTries = 3
)

// PD is what Load needs of PD; all of it must answer.
type PD interface {
	ClusterID(ctx context.Context) (uint64, error)
	ClusterVersion(ctx context.Context) (string, error)
	MaxReplicas(ctx context.Context) (int, error)
	// StoresWithSizes returns an error where a living store's size is not known;
	// a silent one's may be missing (0).
	StoresWithSizes(ctx context.Context) ([]policy.Store, error)
}

// Hardware is what TiDB's cluster_hardware says of the CPU of one TiKV; zero is
// unknown.
type Hardware struct {
	Logical  float64 // cpu-logical-cores: what the instance may use, cgroup quota and cpuset applied
	Physical float64 // cpu-physical-cores: what the machine has, without hyper-threads
}

// Sources is where Load reads from. Sources other than PD may be nil: then they
// are not asked, and what only they know stays unknown.
type Sources struct {
	Name string // what people call the cluster
	PD   PD
	// HostCores are the cores of a host as configured, by the host part of its
	// stores' addresses. They win over everything that is read.
	HostCores map[string]float64
	// Quota reads tikv_server_cpu_cores_quota from a store's status port; 0 when
	// the store does not tell.
	Quota func(ctx context.Context, store policy.Store) (float64, error)
	// Hardware reads cluster_hardware, by Store.Address. Its warnings, meant
	// for people, name what did not answer.
	Hardware func(ctx context.Context) (map[string]Hardware, []string, error)
	// RegionBytes reads coprocessor.region-split-size of a store.
	RegionBytes func(ctx context.Context, store policy.Store) (uint64, error)
	// Tables counts the user tables.
	Tables func(ctx context.Context) (int, error)
	// Timeout bounds everything that is read besides PD, taken together; zero
	// means DefaultTimeout.
	Timeout time.Duration
}

// Targets returns the stores of c whose settings are changed and whose CPU is
// watched during a backup: TiKV that is up, or offline and still leading
// regions, and that sends heartbeats. The error wraps policy.ErrNoStores or
// policy.ErrAllSilent when there is none, which must end a backup before it
// starts: br neither fails nor succeeds against no store.
func Targets(c policy.Cluster) ([]policy.Store, error) {
	stores := c.BackupStores()
	if len(stores) == 0 {
		return nil, fmt.Errorf("%w among the %d that pd lists", policy.ErrNoStores, len(c.Stores))
	}
	targets := slices.DeleteFunc(stores, func(s policy.Store) bool { return s.Silent })
	if len(targets) == 0 {
		return nil, fmt.Errorf("%w: no heartbeat for over 20 s", policy.ErrAllSilent)
	}
	return targets, nil
}

// Load reads the cluster's topology. It fails only if PD does; a cluster without
// a usable store is a topology too (see Targets).
func Load(ctx context.Context, src Sources) (policy.Cluster, error) {
	c, err := readPD(ctx, src.PD)
	if err != nil {
		return policy.Cluster{}, fmt.Errorf("read topology: %w", err)
	}
	c.Name = src.Name
	targets, _ := Targets(c) // none: nothing to ask
	r := src.read(ctx, targets)
	c.RegionBytes, c.Tables = r.regionBytes, r.tables
	for i := range c.Stores {
		c.Stores[i].Cores = r.limit(c.Stores[i])
	}
	var hostWarnings []string
	c.Hosts, hostWarnings = hosts(c.BackupStores(), src.HostCores, r)
	c.Warnings = slices.Concat(storeWarnings(c), leaderWarnings(c), r.warnings, hostWarnings)
	return c, nil
}

func readPD(ctx context.Context, pd PD) (c policy.Cluster, err error) {
	if c.ID, err = pd.ClusterID(ctx); err != nil {
		return c, err
	}
	if c.Version, err = pd.ClusterVersion(ctx); err != nil {
		return c, err
	}
	if c.Replicas, err = pd.MaxReplicas(ctx); err != nil {
		return c, err
	}
	c.Stores, err = pd.StoresWithSizes(ctx)
	return c, err
}

// readings is what the sources besides PD said.
type readings struct {
	quotas      map[uint64]float64  // by store id
	hardware    map[string]Hardware // by address
	regionBytes uint64
	tables      int
	warnings    []string
}

// limit returns the cores that an instance may use, 0 when unknown.
func (r readings) limit(s policy.Store) float64 {
	if q := r.quotas[s.ID]; q > 0 {
		return q
	}
	return r.hardware[s.Address].Logical
}

// read asks all sources at the same time.
func (s Sources) read(ctx context.Context, targets []policy.Store) readings {
	timeout := s.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var (
		r                                 readings
		all                               sync.WaitGroup
		quota, hardware, regions, counted []string // warnings, in this order
	)
	all.Go(func() { r.quotas, quota = s.readQuotas(ctx, targets) })
	all.Go(func() { r.hardware, hardware = s.readHardware(ctx) })
	all.Go(func() { r.regionBytes, regions = s.readRegionBytes(ctx, targets) })
	all.Go(func() { r.tables, counted = s.readTables(ctx) })
	all.Wait()
	r.warnings = slices.Concat(quota, hardware, regions, counted)
	return r
}

func (s Sources) readQuotas(ctx context.Context, targets []policy.Store) (map[uint64]float64, []string) {
	if s.Quota == nil {
		return nil, nil
	}
	values, errs := make([]float64, len(targets)), make([]error, len(targets))
	var g errgroup.Group
	g.SetLimit(quotaRequests)
	for i, t := range targets {
		if t.StatusAddress != "" { // else storeWarnings says so
			g.Go(func() error { values[i], errs[i] = s.Quota(ctx, t); return nil })
		}
	}
	_ = g.Wait() // its functions return nil
	quotas := map[uint64]float64{}
	var unread []string
	for i, t := range targets {
		switch {
		case errs[i] != nil:
			unread = append(unread, fmt.Sprintf("%s (%v)", t.StatusAddress, errs[i]))
		case values[i] > 0:
			quotas[t.ID] = values[i]
		}
	}
	return quotas, warn("CPU quota not read from the status port of %s", unread)
}

func (s Sources) readHardware(ctx context.Context) (map[string]Hardware, []string) {
	if s.Hardware == nil {
		return nil, nil
	}
	hardware, warnings, err := s.Hardware(ctx)
	if err != nil {
		return nil, append(warnings, fmt.Sprintf("cluster_hardware not read: %v", err))
	}
	return hardware, warnings
}

func (s Sources) readRegionBytes(ctx context.Context, targets []policy.Store) (uint64, []string) {
	if s.RegionBytes == nil || len(targets) == 0 {
		return 0, nil
	}
	var last error
	for _, t := range targets[:min(len(targets), regionSizeTries)] {
		size, err := s.RegionBytes(ctx, t)
		if err == nil {
			return size, nil
		}
		last = fmt.Errorf("%s: %w", t.Address, err)
	}
	return 0, []string{fmt.Sprintf("region size not read: %v", last)}
}

func (s Sources) readTables(ctx context.Context) (int, []string) {
	if s.Tables == nil {
		return 0, nil
	}
	n, err := s.Tables(ctx)
	if err != nil {
		return 0, []string{fmt.Sprintf("number of tables not read: %v", err)}
	}
	return n, nil
}
