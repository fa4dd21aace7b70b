package policy

import (
	"fmt"
	"strings"
)

// forecast writes a prediction down with its sources.
func (p *planner) forecast(c candidate) Forecast {
	pr := c.prediction
	b := p.batchingOf(p.controlSettings())
	return Forecast{
		RateMBPerS: pr.rateMBPerS, Duration: pr.duration, SlowestStore: pr.slowest,
		HostCPURatio: pr.hostShare, WorstHost: pr.worstHost, GCHold: pr.duration,
		ControlLag: ExpectedLag(c.concurrency, b.batch, b.refresh, p.regionBytes(), p.threadRate(c.threads)),
		QPSDrop:    p.impactRange(pr.impact.qps, pr.qpsHost, c.codec == CodecZstd),
		P95Rise:    p.impactRange(pr.impact.p95, pr.p95Host, false),
	}
}

// threadRate is what one thread writes, in MB/s: k, or its part of the ratelimit.
func (p *planner) threadRate(threads int) float64 {
	return p.model.storeRate(threads) / float64(threads)
}

// impactRange names the measurement behind a range, the base load at which it
// was read and everything that was assumed.
func (p *planner) impactRange(s span, host int, zstd bool) Range {
	h := p.model.hosts[host]
	notes := []string{fmt.Sprintf("2024 BR v6.5.3 measurements on %s, at base load %s of host %s",
		mediumName(p.opt.Medium), FormatRatio(h.base), h.name)}
	if extrapolated(h.base) {
		notes = append(notes, "extrapolated: measured at 25% and 65%, the nearer one counts")
	}
	if h.cores == 0 {
		notes = append(notes, "cores of the host unknown: full measured intensity assumed")
	}
	if zstd {
		notes = append(notes, "4 points added for zstd at the measured intensities, less below them")
	}
	notes = append(notes, "low end at the threads' average use (640/1395 of the ceiling), high end at the ceiling")
	return Range{Low: s.low, High: s.high, Source: strings.Join(notes, "; ")}
}

func mediumName(m Medium) string {
	switch m {
	case MediumNVMe:
		return "NVMe"
	case MediumS3:
		return "NAS (S3 counts as NAS)"
	case MediumNAS:
	}
	return "NAS"
}

// maxAlternatives bounds what a plan lists.
const maxAlternatives = 6

// alternatives are the near misses: what the optimizer would take, the other
// codecs, the other tiers, one thread more and one less. Given values stay.
func (p *planner) alternatives(chosen candidate) []Alternative {
	seen := []candidate{chosen}
	out := []Alternative{}
	for _, c := range p.nearMisses(chosen) {
		if len(out) == maxAlternatives || containsSame(seen, c) {
			continue
		}
		seen = append(seen, c)
		out = append(out, p.alternative(c, p.whyNot(c, chosen)))
	}
	return out
}

func containsSame(list []candidate, c candidate) bool {
	for i := range list {
		if list[i].same(&c) {
			return true
		}
	}
	return false
}

func (p *planner) nearMisses(chosen candidate) []candidate {
	var out []candidate
	if p.opt.Mode == ModeTiered {
		if best, ok := p.best(p.search()); ok {
			out = append(out, best)
		}
	}
	for _, codec := range p.codecChoices() {
		out = append(out, p.candidate(chosen.threads, chosen.concurrency, codec))
	}
	for _, t := range tiers() {
		out = append(out, p.tierCandidate(t))
	}
	for _, threads := range p.threadChoices() {
		if threads == chosen.threads-1 || threads == chosen.threads+1 {
			out = append(out, p.candidate(threads, p.concurrency(threads, chosen.concurrency), chosen.codec))
		}
	}
	return out
}

func (p *planner) alternative(c candidate, why string) Alternative {
	return Alternative{
		NumThreads: c.threads, Concurrency: c.concurrency, Compression: c.codec,
		Forecast: p.forecast(c), Why: why,
	}
}

// whyNot compares a near miss with what was chosen.
func (p *planner) whyNot(c, chosen candidate) string {
	if len(c.breaches) > 0 {
		broken := make([]string, 0, len(c.breaches))
		for _, b := range c.breaches {
			broken = append(broken, b.String())
		}
		return "breaks a limit: " + strings.Join(broken, ", ")
	}
	var parts []string
	if a, b := c.prediction, chosen.prediction; c.threads != chosen.threads {
		parts = append(parts, fmt.Sprintf("takes %s instead of %s, and %s of the worst host instead of %s",
			formatDuration(a.duration), formatDuration(b.duration), FormatRatio(a.hostShare), FormatRatio(b.hostShare)))
	}
	if c.codec != chosen.codec {
		parts = append(parts, fmt.Sprintf("%s; the goal %s prefers %s", codecTrait(c.codec), p.opt.Goal, chosen.codec))
	}
	if c.concurrency != chosen.concurrency {
		parts = append(parts, fmt.Sprintf("concurrency %d instead of %d: a higher one brings the threads nearer to their ceiling and makes a cut wait longer",
			c.concurrency, chosen.concurrency))
	}
	if p.opt.Mode == ModeTiered {
		parts = append(parts, fmt.Sprintf("not the plan of tier %s", p.tier.name))
	}
	return strings.Join(parts, "; ")
}
