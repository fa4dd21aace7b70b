package policy

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// checkInput returns an *InputError with everything that is wrong, or nil.
func checkInput(in PlanInput, t topology) error {
	var ps problems
	ps.checkWords(in.Options)
	ps.checkThreads(in.Options)
	ps.checkControl(in.Options)
	ps.checkCompression(in.Options)
	ps.checkNumbers(in.Options)
	ps.checkLimits(in.Options.Limits)
	ps.checkTopology(t)
	ps.checkReplicaRead(in, t.live)
	ps.checkCores(in.Options, t)
	if len(ps) == 0 {
		return nil
	}
	return &InputError{Problems: ps}
}

type problems []Problem

func (ps *problems) add(field, format string, args ...any) {
	*ps = append(*ps, Problem{Field: field, Text: fmt.Sprintf(format, args...)})
}

func (ps *problems) checkWords(o Options) {
	if !slices.Contains([]Mode{"", ModeTiered, ModeOptimize}, o.Mode) {
		ps.add("mode", "unknown (got %q, want tiered or optimize)", o.Mode)
	}
	if !slices.Contains([]Goal{"", GoalImpact, GoalSpeed, GoalSpace, GoalBalanced}, o.Goal) {
		ps.add("goal", "unknown (got %q, want impact, speed, space or balanced)", o.Goal)
	}
	if !slices.Contains([]Medium{"", MediumNAS, MediumS3, MediumNVMe}, o.Medium) {
		ps.add("medium", "unknown (got %q, want nas, s3 or nvme)", o.Medium)
	}
}

func (ps *problems) checkThreads(o Options) {
	if t := o.NumThreads; t != nil {
		switch {
		case *t < 1:
			ps.add("num_threads", "below 1 (got %d): TiKV would use its default instead", *t)
		case *t > maxUsualThreads && !o.AllowUnusual:
			ps.add("num_threads", "above %d (got %d): lower it, or set allow_unusual", maxUsualThreads, *t)
		}
	}
	if c := o.Concurrency; c != nil {
		switch {
		case *c < 1 || *c > math.MaxInt32:
			ps.add("concurrency", "not a number of streams (got %d, want %d to %d)", *c, minUsualConcurrency, maxConcurrency)
		case (*c < minUsualConcurrency || *c > maxConcurrency) && !o.AllowUnusual:
			ps.add("concurrency", "outside %d..%d (got %d): change it, or set allow_unusual", minUsualConcurrency, maxConcurrency, *c)
		}
	}
}

func (ps *problems) checkControl(o Options) {
	if b := o.BatchSize; b != nil && *b < 1 {
		ps.add("batch_size", "below 1 (got %d): TiKV would use its default instead", *b)
	}
	if r := o.RefreshInterval; r != nil && (*r < time.Second || *r%time.Millisecond != 0) {
		ps.add("refresh_interval", "not a whole number of milliseconds of at least a second (got %s)", *r)
	}
}

func (ps *problems) checkCompression(o Options) {
	if c := o.Compression; c != nil && !slices.Contains(codecs(), *c) {
		ps.add("compression", "unknown (got %q, want %s)", *c, strings.Join(codecs(), ", "))
	}
	if l := o.CompressionLevel; l != nil && (*l < minZstdLevel || *l > maxZstdLevel) {
		ps.add("compression_level", "outside %d..%d (got %d): br would pass it on unchecked", minZstdLevel, maxZstdLevel, *l)
	}
}

// codecs returns what br's --compression takes, exactly as written, the codec
// with the least TiKV CPU first.
func codecs() []string { return []string{CodecLZ4, CodecSnappy, CodecZstd} }

func (ps *problems) checkNumbers(o Options) {
	if k := o.RatePerThread; !(k >= 0) || math.IsInf(k, 0) {
		ps.add("rate_per_thread", "not a rate in MB/s (got %v)", k)
	}
	if b := o.BaseLoad; b != nil {
		ps.checkRatio("base_load", *b, 1)
	}
	if r := o.RateLimitMBPerS; r != nil && *r < 0 {
		ps.add("ratelimit", "below 0 (got %d MB/s)", *r)
	}
}

func (ps *problems) checkLimits(l Limits) {
	ps.checkRatio("limits.max_host_cpu", l.MaxHostCPU, 1)
	ps.checkRatio("limits.max_qps_drop", l.MaxQPSDrop, 1)
	ps.checkRatio("limits.max_p95_rise", l.MaxP95Rise, math.MaxFloat64)
	ps.checkRate("limits.storage_mb_per_s", l.StorageMBPerS)
	ps.checkRate("limits.network_mb_per_s", l.NetworkMBPerS)
	ps.checkDuration("limits.max_duration", l.MaxDuration)
	ps.checkDuration("limits.max_gc_hold", l.MaxGCHold)
}

func (ps *problems) checkDuration(field string, d time.Duration) {
	if d < 0 {
		ps.add(field, "below 0 (got %s)", d)
	}
}

// checkRatio wants a number of 0..most; NaN is refused by the comparison.
func (ps *problems) checkRatio(field string, v, most float64) {
	if !(v >= 0 && v <= most) {
		ps.add(field, "not a share (got %v, want 0..1, such as 0.65 for 65%%)", v)
	}
}

func (ps *problems) checkRate(field string, v float64) {
	if !(v >= 0 && v <= math.MaxFloat64) {
		ps.add(field, "not a rate in MB/s (got %v)", v)
	}
}

func (ps *problems) checkTopology(t topology) {
	c := t.cluster
	if c.Replicas < 0 {
		ps.add("cluster.replicas", "below 0 (got %d)", c.Replicas)
	}
	if c.Tables < 0 {
		ps.add("cluster.tables", "below 0 (got %d)", c.Tables)
	}
	for _, s := range c.Stores {
		if !(s.Cores >= 0 && s.Cores <= math.MaxInt32) {
			ps.add("cluster.stores."+s.Address+".cores", "not a number of cores (got %v)", s.Cores)
		}
	}
	for _, h := range c.Hosts {
		if !(h.Cores >= 0 && h.Cores <= math.MaxInt32) {
			ps.add("cluster.hosts."+h.Name+".cores", "not a number of cores (got %v)", h.Cores)
		}
		ps.checkRatio("cluster.hosts."+h.Name+".base_load", h.BaseLoad, 1)
	}
	switch {
	case len(t.backup) == 0:
		*ps = append(*ps, Problem{"cluster.stores", fmt.Sprintf(
			"%v: PD lists %d stores, none of them a TiKV that is up or still leads regions", ErrNoStores, len(c.Stores)), ErrNoStores})
	case len(t.live) == 0:
		*ps = append(*ps, Problem{"cluster.stores", fmt.Sprintf(
			"%v: bring at least one back before a backup", ErrAllSilent), ErrAllSilent})
	}
}

// checkReplicaRead refuses a label that no live store carries: br would look
// for such stores for ever.
func (ps *problems) checkReplicaRead(in PlanInput, live []Store) {
	label := in.Options.ReplicaReadLabel
	if label == "" {
		return
	}
	if key, value, ok := strings.Cut(label, ":"); !ok || key == "" || value == "" || strings.Contains(value, ":") {
		ps.add("replica_read_label", "not a label (got %q, want key:value)", label)
		return
	}
	if br, _ := CapabilityFor(in.brVersion()); !br.SupportsReplicaReadFlag {
		ps.add("replica_read_label", "br %s has no such flag (it came with v6.6.0)", br.Version)
	}
	if len(live) > 0 && !slices.ContainsFunc(live, func(s Store) bool { return carries(s, label) }) {
		ps.add("replica_read_label", "no live store carries %q: br would retry for ever", label)
	}
}

// checkCores refuses limits that need a host's cores where these are unknown.
func (ps *problems) checkCores(o Options, t topology) {
	l := o.Limits
	if l.MaxHostCPU == 0 && l.MaxQPSDrop == 0 && l.MaxP95Rise == 0 {
		return
	}
	for _, h := range t.hosts(o) {
		if h.cores == 0 {
			ps.add("cluster.hosts."+h.name+".cores", "unknown: configure it, or drop the limits on CPU and impact")
		}
	}
}

// brVersion is br's version, or the cluster's when br's is unknown.
func (in PlanInput) brVersion() string {
	if in.BRVersion != "" {
		return in.BRVersion
	}
	return in.Cluster.Version
}
