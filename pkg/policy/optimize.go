package policy

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// maxSearchedThreads bounds the search when unusual values are allowed.
const maxSearchedThreads = 64

// chooseOptimal searches num-threads × concurrency × codec for the plan that
// meets every limit and serves the goal best.
func (p *planner) chooseOptimal() (candidate, error) {
	all := p.search()
	if best, ok := p.best(all); ok {
		return best, nil
	}
	nearest := p.nearest(all)
	return candidate{}, &UnmetError{
		Mode: p.opt.Mode, Nearest: p.alternative(nearest, "comes nearest"),
		Breaches: nearest.breaches, Remedies: p.remedies(all, nearest),
	}
}

// search returns every combination that the options leave open. The formulas
// contain threads and, for the impact, the codec; C is judged by the goal alone.
func (p *planner) search() []candidate {
	var all []candidate
	for _, threads := range p.threadChoices() {
		for _, codec := range p.codecChoices() {
			c := p.candidate(threads, 0, codec)
			for _, c.concurrency = range p.concurrencyChoices(threads) {
				all = append(all, c)
			}
		}
	}
	return all
}

func (p *planner) threadChoices() []int {
	if p.opt.NumThreads != nil {
		return []int{*p.opt.NumThreads}
	}
	bound := maxUsualThreads
	if p.opt.AllowUnusual {
		bound = maxSearchedThreads
	}
	most := 1 // more than any instance takes would change nothing
	for _, s := range p.model.stores {
		if s.cores == 0 { // what TiKV would do with a higher value is unknown too
			most = max(most, maxUsualThreads)
			continue
		}
		most = max(most, s.threads(bound))
	}
	choices := make([]int, most)
	for i := range choices {
		choices[i] = i + 1
	}
	return choices
}

func (p *planner) codecChoices() []string {
	if p.opt.Compression != nil {
		return []string{*p.opt.Compression}
	}
	return codecs()
}

// concurrencyChoices are the measured values and, where C counts tables, their
// number, near which it is most useful.
func (p *planner) concurrencyChoices(threads int) []int {
	if !p.freeConcurrency() {
		return []int{p.concurrency(threads, 0)}
	}
	choices := []int{minUsualConcurrency, 16, 64, 128, maxConcurrency}
	if p.countsTables() {
		choices = append(choices, min(max(p.in.Cluster.Tables, minUsualConcurrency), maxConcurrency))
	}
	slices.Sort(choices)
	return slices.Compact(choices)
}

// best is the candidate that the goal prefers among those that break nothing.
func (p *planner) best(all []candidate) (candidate, bool) {
	return p.least(all, func(c *candidate) bool { return len(c.breaches) == 0 }, p.cost)
}

// nearest is the candidate whose breaches are smallest in proportion to their
// limits, summed.
func (p *planner) nearest(all []candidate) candidate {
	c, _ := p.least(all, func(*candidate) bool { return true }, func(c *candidate) cost {
		var excess float64
		for _, b := range c.breaches {
			excess += b.excess()
		}
		return p.cost(c).after(excess)
	})
	return c
}

// cost orders candidates: compared from the left, smaller is better.
type cost [5]float64

// after returns a cost in which first counts before everything in c.
func (c cost) after(first float64) cost {
	return cost{first, c[0], c[1], c[2], c[3]}
}

// least returns the eligible candidate of the smallest cost. Ties go to the
// first, which search makes the one with fewer threads, the codec with less TiKV
// CPU, the smaller C.
func (p *planner) least(all []candidate, eligible func(*candidate) bool, costOf func(*candidate) cost) (candidate, bool) {
	best, bestCost := -1, cost{}
	for i := range all {
		c := &all[i]
		if !eligible(c) {
			continue
		}
		if now := costOf(c); best < 0 || slices.Compare(now[:], bestCost[:]) < 0 {
			best, bestCost = i, now
		}
	}
	if best < 0 {
		return candidate{}, false
	}
	return all[best], true
}

// cost says what a goal wants, most important first:
//
//   - impact: the smallest QPS drop, then host CPU, the lightest codec, small C
//   - speed: the shortest backup, then the fastest codec, C near the number of
//     tables where it counts them, near the tier's otherwise
//   - space: the smallest codec, then as near to the measured tier as possible
//   - balanced: as near to the measured tier as possible, with a light codec
func (p *planner) cost(c *candidate) cost {
	fromTier := math.Abs(float64(c.threads - p.tier.threads))
	fromTierC := math.Abs(float64(c.concurrency - p.tier.concurrency))
	switch p.opt.Goal {
	case GoalImpact:
		return cost{c.prediction.impact.qps.high, c.prediction.hostShare, cpuRank(c.codec), float64(c.concurrency)}
	case GoalSpeed:
		return cost{c.prediction.duration.Seconds(), speedRank(c.codec), p.fromTables(c.concurrency)}
	case GoalSpace:
		return cost{sizeRank(c.codec), fromTier, fromTierC}
	case GoalBalanced:
	}
	return cost{fromTier, cpuRank(c.codec), fromTierC}
}

// countsTables reports whether C is tables in flight and their number is known.
func (p *planner) countsTables() bool {
	return p.br.Concurrency == TablesInFlight && p.in.Cluster.Tables > 0
}

func (p *planner) fromTables(concurrency int) float64 {
	aim := p.tier.concurrency
	if p.countsTables() {
		aim = min(max(p.in.Cluster.Tables, minUsualConcurrency), maxConcurrency)
	}
	return math.Abs(float64(concurrency - aim))
}

// The codecs in the order of the measurements; smaller is better.
func cpuRank(codec string) float64 {
	return float64(slices.Index([]string{CodecLZ4, CodecSnappy, CodecZstd}, codec))
}

func speedRank(codec string) float64 {
	return float64(slices.Index([]string{CodecSnappy, CodecLZ4, CodecZstd}, codec))
}

func sizeRank(codec string) float64 {
	return float64(slices.Index([]string{CodecZstd, CodecSnappy, CodecLZ4}, codec))
}

// tierUnmet explains a tier's plan that breaks a limit: what mode optimize
// would take instead, or what it would need.
func (p *planner) tierUnmet(c candidate) error {
	err := &UnmetError{Mode: ModeTiered, Nearest: p.alternative(c, "the tier's plan"), Breaches: c.breaches}
	all := p.search()
	if best, ok := p.best(all); ok {
		err.Remedies = []string{"mode optimize, which takes " + describe(best)}
	} else {
		err.Remedies = p.remedies(all, p.nearest(all))
	}
	return err
}

// remedies lists what would make a plan possible: one limit moved, more threads
// than usual, given values left to the planner; and if none of these is enough
// alone, all the limits that the nearest plan needs.
func (p *planner) remedies(all []candidate, nearest candidate) []string {
	out := p.movedLimits(all)
	loosened := func(change string, loosen func(*Options)) {
		q := *p
		loosen(&q.opt)
		if best, ok := q.best(q.search()); ok {
			out = append(out, change+", which allows "+describe(best))
		}
	}
	if p.opt.NumThreads != nil {
		loosened("leave num_threads to brctl", func(o *Options) { o.NumThreads = nil })
	} else if !p.opt.AllowUnusual {
		loosened("allow_unusual", func(o *Options) { o.AllowUnusual = true })
	}
	if p.opt.Compression != nil {
		loosened("leave compression to brctl", func(o *Options) { o.Compression = nil })
	}
	if len(out) > 0 {
		return out
	}
	needs := make([]string, 0, len(nearest.breaches))
	for _, b := range nearest.breaches {
		needs = append(needs, fmt.Sprintf("%s >= %s", b.Limit, b.needed()))
	}
	return []string{"all of " + strings.Join(needs, " and ") + ", which allow " + describe(nearest)}
}

// movedLimits says for each limit which value of it would do if all others
// stayed as they are.
func (p *planner) movedLimits(all []candidate) []string {
	var out []string
	for _, limit := range limitNames() {
		only := func(c *candidate) bool { return len(c.breaches) == 1 && c.breaches[0].Limit == limit }
		got := func(c *candidate) cost { return p.cost(c).after(c.breaches[0].Got) }
		if c, ok := p.least(all, only, got); ok {
			b := c.breaches[0]
			out = append(out, fmt.Sprintf("%s >= %s, which allows %s", limit, b.needed(), describe(c)))
		}
	}
	return out
}

func describe(c candidate) string {
	return fmt.Sprintf("num-threads %d, concurrency %d, %s", c.threads, c.concurrency, c.codec)
}
