package policy

import "fmt"

// reasons explains every value of a plan, in the order in which a person reads
// it. The item names are the JSON names of the values.
func (p *planner) reasons(plan Plan, c candidate) []Reason {
	f := plan.Forecast
	return []Reason{
		{"tier", fmt.Sprintf("%s in all replicas: tier %s (%s)", FormatBytes(p.topo.usedBytes), p.tier.name, p.tier.bounds)},
		{"num_threads", p.whyThreads(plan)},
		{"concurrency", p.whyConcurrency(plan)},
		{"batch_size", p.whySetting(plan.BatchSize > 0, p.opt.BatchSize != nil, fmt.Sprintf("a worker gives its permit back after a batch of %d, so the smaller the sooner a cut bites", plan.BatchSize))},
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
		{"qps_drop", f.QPSDrop.Source + manualOpinion(c.prediction)},
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
	b := p.batchingOf(plan.BatchSize, plan.RefreshInterval)
	return fmt.Sprintf("at most %s to the next tick, then concurrency %d x batch %d x %s at %s%s; TiKV %s: the thread pool %s",
		b.refresh, plan.Concurrency, b.batch, FormatBytes(p.regionBytes()), formatRate(p.threadRate(plan.NumThreads)), b.source, p.kv.Version, poolRuleText(p.kv.Pool))
}

// manualOpinion is the manual's estimate of the QPS drop, beside ours.
func manualOpinion(pr prediction) string {
	if pr.busiestHost == "" {
		return ""
	}
	text := fmt.Sprintf("; second opinion: PingCAP's manual, at a total CPU of up to %s on host %s, expects ",
		FormatRatio(pr.totalCPU), pr.busiestHost)
	r, ok := ManualImpact(pr.totalCPU)
	switch {
	case !ok:
		return text + "more than 20%, without a figure"
	case r.High == 0:
		return text + "almost none"
	}
	return text + "at most about " + FormatRatio(r.High)
}

func poolRuleText(r PoolRule) string {
	if r == PoolRebuilds {
		return "is rebuilt by each request, so raising above the value at the request's time waits for the next one"
	}
	return "ignores shrinks of ten threads or fewer, so only the soft limit bounds what runs"
}
