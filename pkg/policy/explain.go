package policy

import (
	"fmt"
	"slices"
	"strings"
)

// reasons explains every value of a plan, in the order in which a person reads
// it. The item names are the JSON names of the values.
func (p *planner) reasons(plan Plan) []Reason {
	f := plan.Forecast
	return []Reason{
		{"tier", fmt.Sprintf("%s in all replicas: tier %s (%s)", FormatBytes(p.in.Cluster.UsedBytes()), p.tier.name, p.tier.bounds)},
		{"num_threads", p.whyThreads(plan)},
		{"concurrency", p.whyConcurrency(plan)},
		{"batch_size", p.whySetting(plan.BatchSize > 0, p.opt.BatchSize != nil, fmt.Sprintf("a worker gives its permit back after %d region(s), so that a cut bites sooner", plan.BatchSize))},
		{"refresh_interval", p.whySetting(plan.RefreshInterval > 0, p.opt.RefreshInterval != nil, fmt.Sprintf("TiKV looks at num-threads every %s", plan.RefreshInterval))},
		{"compression", p.whyCompression(plan)},
		{"compression_level", p.whyLevel(plan)},
		{"checksum", p.whyChecksum(plan)},
		{"ratelimit", p.whyRateLimit()},
		{"replica_read_label", p.whyReplicaRead()},
		{"rate_mb_per_s", p.whyRate(f)},
		{"duration", fmt.Sprintf("the slowest store, %s, ends the backup: its share of one replica at k times its threads", f.SlowestStore)},
		{"host_cpu_ratio", whyHostCPU(f)},
		{"gc_hold", "the GC safepoint cannot pass BackupTS while br runs, so it is held for about the duration"},
		{"control_lag", p.whyLag(plan)},
		{"qps_drop", f.QPSDrop.Source},
		{"p95_rise", f.P95Rise.Source},
	}
}

func (p *planner) whyThreads(plan Plan) string {
	switch {
	case p.opt.NumThreads != nil:
		return "given"
	case plan.Mode == ModeOptimize:
		return fmt.Sprintf("goal %s among the plans that meet the limits", plan.Goal)
	case plan.NumThreads < p.tier.threads:
		return fmt.Sprintf("tier %s has %d; lowered to stay below the ceiling of storage or network, above which threads would only wait",
			p.tier.name, p.tier.threads)
	}
	return fmt.Sprintf("measured recommendation for tier %s", p.tier.name)
}

func (p *planner) whyConcurrency(plan Plan) string {
	meaning := fmt.Sprintf("for br %s it is %s", p.br.Version, p.br.Concurrency)
	switch {
	case p.rateLimited():
		return "br's ratelimit forces 1"
	case p.opt.Concurrency != nil:
		return "given; " + meaning
	case p.opt.Control:
		return p.whyControlConcurrency(meaning)
	case plan.Mode == ModeOptimize:
		return fmt.Sprintf("goal %s; no formula contains it; %s", plan.Goal, meaning)
	case p.br.Concurrency == StreamsPerStore:
		return fmt.Sprintf("measured recommendation for tier %s, found on v6.5.3 as tables in flight; %s, so it matters less", p.tier.name, meaning)
	}
	return fmt.Sprintf("measured recommendation for tier %s; %s", p.tier.name, meaning)
}

func (p *planner) whyControlConcurrency(meaning string) string {
	text := fmt.Sprintf("left the tier's %d for control: the smallest that keeps the threads busy, because every stream makes a cut wait; %s",
		p.tier.concurrency, meaning)
	switch {
	case p.br.Concurrency == StreamsPerStore:
		return text + ", and one stream feeds all threads of a store"
	case p.in.Cluster.Tables == 0:
		return text + "; number of tables unknown, so br's default"
	}
	return fmt.Sprintf("%s; %d tables over %d stores", text, p.in.Cluster.Tables, len(p.model.stores))
}

func (p *planner) whySetting(set, given bool, why string) string {
	switch {
	case !set:
		return "left as it is: only control needs it"
	case given:
		return "given; " + why
	}
	return "for control: " + why
}

func (p *planner) whyCompression(plan Plan) string {
	if p.opt.Compression != nil {
		return "given; " + codecTrait(plan.Compression)
	}
	text := fmt.Sprintf("goal %s; %s", plan.Goal, codecTrait(plan.Compression))
	if plan.Compression == CodecSnappy {
		text += "; the tiers name only lz4 and zstd"
	}
	return text
}

func (p *planner) whyLevel(plan Plan) string {
	switch {
	case plan.CompressionLevel != nil:
		return "given; tried on zstd: 1 is the fastest, 16 the smallest, 3 the default"
	case p.opt.CompressionLevel != nil:
		return "not sent: see the warnings"
	}
	return "not sent: the codec's default"
}

func (p *planner) whyChecksum(plan Plan) string {
	text := "off: its CPU is not bound by num-threads"
	if plan.Checksum {
		text = "asked for"
	}
	return fmt.Sprintf("%s; always sent, since br %s would default to %t", text, p.br.Version, p.br.ChecksumDefault)
}

func (p *planner) whyRateLimit() string {
	if p.rateLimited() {
		return "given"
	}
	return "not sent: num-threads is the better lever"
}

func (p *planner) whyReplicaRead() string {
	if p.opt.ReplicaReadLabel == "" {
		return "not sent: leaders are read"
	}
	working := 0
	for _, s := range p.model.stores {
		if s.works {
			working++
		}
	}
	return fmt.Sprintf("given; carried by %d of %d live stores, which do all the work", working, len(p.model.stores))
}

// whyRate shows both published priors, because they differ by a factor of three.
func (p *planner) whyRate(f Forecast) string {
	manual := f.RateMBPerS * RatePerThreadManual / p.opt.RatePerThread
	text := fmt.Sprintf("k = %s per thread (%s), times the threads of all stores", formatRate(p.opt.RatePerThread), p.opt.RateSource)
	if p.opt.RatePerThread != RatePerThreadMeasured {
		text += fmt.Sprintf("; the 2024 BR v6.5.3 measurements say %s per thread", formatRate(RatePerThreadMeasured))
	}
	if p.rateLimited() {
		return text + "; bounded by the ratelimit"
	}
	return fmt.Sprintf("%s; PingCAP's manual says about %s per thread while threads are few, which would be %s and %s",
		text, formatRate(RatePerThreadManual), formatRate(manual),
		formatDuration(seconds(f.Duration.Seconds()*p.opt.RatePerThread/RatePerThreadManual)))
}

func whyHostCPU(f Forecast) string {
	if f.WorstHost == "" {
		return "unknown: no host's cores are known"
	}
	return fmt.Sprintf("what the backup threads on the worst host, %s, can take; TiKV's two backup-io threads per instance come on top", f.WorstHost)
}

func (p *planner) whyLag(plan Plan) string {
	batch, refresh := effectiveBatching(plan.BatchSize, plan.RefreshInterval)
	source := ""
	if batch != plan.BatchSize || refresh != plan.RefreshInterval {
		source = " (TiKV's defaults where nothing is set)"
	}
	return fmt.Sprintf("at most %s to the next tick, then %d streams x %d regions x %s at %s%s; TiKV %s: the thread pool %s",
		refresh, plan.Concurrency, batch, FormatBytes(p.regionBytes()), formatRate(p.opt.RatePerThread), source, p.kv.Version, poolRuleText(p.kv.Pool))
}

func poolRuleText(r PoolRule) string {
	if r == PoolRebuilds {
		return "is rebuilt by each request, so raising above the value at the request's time waits for the next one"
	}
	return "ignores shrinks of ten threads or fewer, so only the soft limit bounds what runs"
}

// namedAtMost is how many stores or hosts a warning names.
const namedAtMost = 5

func nameSome(names []string) string {
	if len(names) <= namedAtMost {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:namedAtMost], ", "), len(names)-namedAtMost)
}

// warnings lists what a person should know before trusting the plan.
func (p *planner) warnings(plan Plan, c candidate) []string {
	out := slices.Clone(p.in.Cluster.Warnings)
	out = append(out, p.versionWarnings()...)
	out = append(out, p.topologyWarnings(plan)...)
	out = append(out, p.optionWarnings(plan)...)
	out = append(out, p.cpuWarnings(c)...)
	if out == nil {
		return []string{}
	}
	return out
}

func (p *planner) versionWarnings() []string {
	var out []string
	if _, w := CapabilityFor(p.in.brVersion()); w != "" {
		out = append(out, "br: "+w)
	}
	if _, w := CapabilityFor(p.in.Cluster.Version); w != "" {
		out = append(out, "TiKV: "+w)
	}
	var versions []string
	for _, s := range p.in.Cluster.Stores {
		if s.Version != "" && !s.TiFlash && s.State != StoreTombstone {
			versions = append(versions, s.Version)
		}
	}
	if err := CheckCompatible(p.in.BRVersion, versions); err != nil {
		out = append(out, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return out
}

func (p *planner) topologyWarnings(plan Plan) []string {
	var out []string
	warn := func(names []string, text string) {
		if len(names) > 0 {
			out = append(out, fmt.Sprintf(text, nameSome(names)))
		}
	}
	c := p.in.Cluster
	var silent, clamped, unknown, noCores, assumed []string
	for _, s := range c.BackupStores() {
		if s.Silent {
			silent = append(silent, s.Address)
		}
	}
	for _, s := range p.model.stores {
		switch {
		case s.maxThreads == 0:
			unknown = append(unknown, s.address)
		case s.threads(plan.NumThreads) != plan.NumThreads:
			clamped = append(clamped, fmt.Sprintf("%s to %d", s.address, s.threads(plan.NumThreads)))
		}
	}
	for _, h := range p.model.hosts {
		if h.cores == 0 {
			noCores = append(noCores, h.name)
		}
		if p.opt.BaseLoad == nil && !p.baseKnown(h.name) {
			assumed = append(assumed, fmt.Sprintf("%s at %s", h.name, FormatRatio(h.base)))
		}
	}
	warn(silent, "no heartbeat from %s: nothing is set there and its regions are led elsewhere; one TiKV that is down has made br 15 times slower (pingcap/tidb#42973)")
	warn(clamped, "num-threads lowered to the instance's cores: %s")
	warn(unknown, "cores unknown, so TiKV may use another num-threads than asked; read back what it uses: %s")
	warn(noCores, "cores of the host unknown, so its CPU share is not forecast: %s")
	warn(assumed, "base load assumed, not measured: %s")
	if c.Replicas == 0 {
		out = append(out, fmt.Sprintf("number of replicas unknown: %d assumed", defaultReplicas))
	}
	if c.UsedBytes() == 0 {
		out = append(out, "no store reports used bytes: the forecast is empty")
	}
	return out
}

func (p *planner) baseKnown(host string) bool {
	return slices.ContainsFunc(p.in.Cluster.Hosts, func(h Host) bool { return h.Name == host && h.BaseKnown })
}

func (p *planner) optionWarnings(plan Plan) []string {
	var out []string
	warn := func(when bool, format string, args ...any) {
		if when {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	level := p.opt.CompressionLevel
	warn(plan.NumThreads > maxUsualThreads, "num-threads %d is above %d, the most that was measured", plan.NumThreads, maxUsualThreads)
	warn(plan.Concurrency > maxConcurrency, "br lowers concurrency %d to %d by itself", plan.Concurrency, maxConcurrency)
	warn(level != nil && plan.Compression != CodecZstd, "compression_level is not sent: it has no effect on %s", plan.Compression)
	warn(level != nil && plan.Compression == CodecZstd && *level == 0, "compression_level 0 is not sent: it means the codec's default")
	warn(p.rateLimited(), "ratelimit is per TiKV, not per cluster; it forces concurrency 1 and has no further effect above 64 MB/s")
	warn(p.rateLimited() && p.opt.Concurrency != nil && *p.opt.Concurrency != 1, "the given concurrency is not used: ratelimit forces 1")
	warn(plan.Checksum, "checksum raised one TiKV's CPU by up to 1200%% in the 2024 BR v6.5.3 measurements; num-threads does not bound it, readpool.unified.max-thread-count does")
	warn(p.opt.Medium == MediumNVMe, "NAS or S3 is recommended as the medium: NVMe costs about 3 points of QPS more")
	return out
}

// cpuWarnings puts the manual's opinion, by total CPU, beside ours.
func (p *planner) cpuWarnings(c candidate) []string {
	total := c.prediction.totalCPU
	if c.prediction.busiestHost == "" {
		return nil
	}
	if total > 1 {
		return []string{fmt.Sprintf("host %s would need %s of its CPU, business included: everything on it slows down", c.prediction.busiestHost, FormatRatio(total))}
	}
	second, ok := ManualImpact(total)
	switch {
	case !ok:
		return []string{fmt.Sprintf("total CPU of host %s may reach %s; PingCAP's manual gives no estimate above 80%%", c.prediction.busiestHost, FormatRatio(total))}
	case second.High > 0:
		return []string{fmt.Sprintf("total CPU of host %s may reach %s, for which PingCAP's manual expects a QPS drop of at most about %s", c.prediction.busiestHost, FormatRatio(total), FormatRatio(second.High))}
	}
	return nil
}
