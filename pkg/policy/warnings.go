package policy

import (
	"fmt"
	"slices"
	"strings"
)

// namedAtMost is how many stores or hosts a warning names.
const namedAtMost = 5

func nameSome(names []string) string {
	if len(names) <= namedAtMost {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:namedAtMost], ", "), len(names)-namedAtMost)
}

// warnings lists what a person should know before trusting the plan, beginning
// with what whoever read the topology says of it, silent stores included.
func (p *planner) warnings(plan Plan, c candidate) []string {
	out := slices.Clone(p.in.Cluster.Warnings)
	out = append(out, p.versionWarnings()...)
	out = append(out, p.topologyWarnings(plan)...)
	out = append(out, p.optionWarnings(plan)...)
	out = append(out, p.cpuWarnings(c)...)
	out = append(out, p.autoTuneWarnings(c)...)
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
	var clamped, unknown, noCores, assumed []string
	for _, s := range p.model.stores {
		switch {
		case s.cores == 0:
			unknown = append(unknown, s.address)
		case s.threads(plan.NumThreads) != plan.NumThreads:
			clamped = append(clamped, fmt.Sprintf("%s to %d", s.address, s.threads(plan.NumThreads)))
		}
	}
	for _, h := range p.model.hosts {
		if h.cores == 0 {
			noCores = append(noCores, h.name)
		}
		if h.assumed {
			assumed = append(assumed, fmt.Sprintf("%s at %s", h.name, FormatRatio(h.base)))
		}
	}
	warn(clamped, "num-threads lowered to the instance's cores: %s")
	warn(unknown, "cores unknown, so TiKV may use another num-threads than asked; read back what it uses: %s")
	warn(noCores, "cores of the host unknown, so its CPU share is not forecast: %s")
	warn(assumed, "base load assumed, not measured: %s")
	if p.in.Cluster.Replicas == 0 {
		out = append(out, fmt.Sprintf("number of replicas unknown: %d assumed", defaultReplicas))
	}
	if p.topo.usedBytes == 0 {
		out = append(out, "no store reports used bytes: the forecast is empty")
	}
	return out
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
	if busy := p.busyConcurrency(plan.NumThreads); p.opt.Control && plan.Concurrency > busy {
		warn(true, "the given concurrency makes a cut of threads wait for up to %s; %d keeps the threads busy as well", formatDuration(plan.Forecast.ControlLag), busy)
	}
	warn(plan.Checksum, "checksum raised one TiKV's CPU by up to 1200%% in the 2024 BR v6.5.3 measurements; num-threads does not bound it, readpool.unified.max-thread-count does")
	warn(p.opt.Medium == MediumNVMe, "NAS or S3 is recommended as the medium: NVMe costs about 3 points of QPS more")
	return out
}

// cpuWarnings names the fullest host where its CPU is beyond what anyone
// measured.
func (p *planner) cpuWarnings(c candidate) []string {
	total, host := c.prediction.totalCPU, c.prediction.busiestHost
	if host == "" {
		return nil
	}
	if total > 1 {
		return []string{fmt.Sprintf("host %s would need %s of its CPU, business included: everything on it slows down", host, FormatRatio(total))}
	}
	if _, ok := ManualImpact(total); !ok {
		return []string{fmt.Sprintf("total CPU of host %s may reach %s; PingCAP's manual gives no estimate above 80%%", host, FormatRatio(total))}
	}
	return nil
}
