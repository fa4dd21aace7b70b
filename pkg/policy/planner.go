package policy

import (
	"math"
	"slices"
	"time"
)

// MakePlan decides how one backup is run: threads, concurrency, codec, and under
// control the settings that make a cut of threads bite soon, with a reason for
// every value and a forecast.
//
// In mode tiered (the default) the measured tiers by cluster size decide; the
// goal picks the codec, and the storage and network ceilings lower the number of
// threads, which would otherwise only wait. In mode optimize all combinations
// are judged against the limits and the goal picks among those that meet them.
// Values given in Options win in both modes.
//
// MakePlan returns an *InputError when the input makes no sense, listing all
// that is wrong (ErrNoStores and ErrAllSilent are found in it by errors.Is), and
// an *UnmetError when a limit is not met. The result does not depend on the
// order of stores and hosts.
func MakePlan(in PlanInput) (Plan, error) {
	t := newTopology(in.Cluster)
	if err := checkInput(in, t); err != nil {
		return Plan{}, err
	}
	p := newPlanner(in, t)
	choose := p.chooseTiered
	if p.opt.Mode == ModeOptimize {
		choose = p.chooseOptimal
	}
	chosen, err := choose()
	if err != nil {
		return Plan{}, err
	}
	return p.plan(chosen), nil
}

// planner holds what is computed once for a plan.
type planner struct {
	in    PlanInput
	topo  topology
	opt   Options // in.Options with defaults filled in
	br    Capability
	kv    Capability
	model *model
	tier  tier
}

func newPlanner(in PlanInput, t topology) *planner {
	p := &planner{in: in, topo: t, opt: withDefaults(in.Options), tier: tierOf(t.usedBytes)}
	p.br, _ = CapabilityFor(in.brVersion())
	p.kv, _ = CapabilityFor(in.Cluster.Version)
	p.model = newModel(t, p.opt)
	return p
}

func withDefaults(o Options) Options {
	if o.Mode == "" {
		o.Mode = ModeTiered
	}
	if o.Goal == "" {
		o.Goal = GoalBalanced
	}
	if o.Medium == "" {
		o.Medium = MediumNAS
	}
	switch {
	case o.RatePerThread == 0:
		o.RatePerThread, o.RateSource = RatePerThreadMeasured, "2024 BR v6.5.3 measurements"
	case o.RateSource == "":
		o.RateSource = "configured"
	}
	return o
}

// candidate is one combination with what the model says of it.
type candidate struct {
	threads     int
	concurrency int
	codec       string
	prediction  prediction
	breaches    []Breach
}

func (p *planner) candidate(threads, concurrency int, codec string) candidate {
	c := candidate{threads: threads, concurrency: concurrency, codec: codec, prediction: p.model.predict(threads, codec)}
	c.breaches = p.opt.Limits.breaches(&c.prediction)
	return c
}

// same reports whether two candidates are the same combination.
func (c *candidate) same(d *candidate) bool {
	return c.threads == d.threads && c.concurrency == d.concurrency && c.codec == d.codec
}

// chooseTiered takes the tier's plan; a limit that it breaks is an *UnmetError,
// since leaving the tier is for a person (or mode optimize) to decide.
func (p *planner) chooseTiered() (candidate, error) {
	c := p.tierCandidate(p.tier)
	for p.opt.NumThreads == nil && c.threads > 1 && slices.ContainsFunc(c.breaches, Breach.isCeiling) {
		c = p.candidate(c.threads-1, p.concurrency(c.threads-1, p.tier.concurrency), c.codec)
	}
	if len(c.breaches) > 0 {
		return candidate{}, p.tierUnmet(c)
	}
	return c, nil
}

// tierCandidate is a tier's plan with the given values in place of its own.
func (p *planner) tierCandidate(t tier) candidate {
	threads, codec := t.threads, codecFor(p.opt.Goal)
	if p.opt.NumThreads != nil {
		threads = *p.opt.NumThreads
	}
	if p.opt.Compression != nil {
		codec = *p.opt.Compression
	}
	return p.candidate(threads, p.concurrency(threads, t.concurrency), codec)
}

// concurrency is C for a number of threads: forced by br's ratelimit, given by
// the user, small under control, otherwise free.
func (p *planner) concurrency(threads, free int) int {
	switch {
	case p.rateLimited():
		return 1
	case p.opt.Concurrency != nil:
		return *p.opt.Concurrency
	case p.opt.Control:
		return p.busyConcurrency(threads)
	}
	return free
}

func (p *planner) freeConcurrency() bool {
	return !p.rateLimited() && p.opt.Concurrency == nil && !p.opt.Control
}

func (p *planner) rateLimited() bool {
	return p.opt.RateLimitMBPerS != nil && *p.opt.RateLimitMBPerS > 0
}

// busyConcurrency is the smallest C that keeps the given threads of every store
// busy; every stream more makes a cut wait longer (ExpectedLag).
//
// From br v8.2 one stream carries all ranges of a store to its threads: C = 1.
// Before, C is tables in flight, and a table with fewer regions on a store than
// the store has threads leaves some idle. With X/r bytes evenly over tables and
// stores,
//
//	regions per table and store = X/r ÷ tables ÷ stores ÷ region size
//	C = threads ÷ regions per table and store, rounded up
//
// but at least 2, so that stores which are done with a table have the next one,
// and at most the number of tables or 256. With an unknown number of tables it
// is 4, br's default and the smallest that was measured.
func (p *planner) busyConcurrency(threads int) int {
	tables := p.in.Cluster.Tables
	if p.br.Concurrency == StreamsPerStore {
		return 1
	}
	if tables == 0 {
		return minUsualConcurrency
	}
	regions := float64(p.topo.usedBytes) / float64(p.topo.replicas) / float64(p.regionBytes())
	perTable := regions / float64(tables) / float64(len(p.model.stores))
	need := maxConcurrency
	if perTable > 0 {
		need = int(min(math.Ceil(float64(threads)/perTable), maxConcurrency))
	}
	return min(max(need, 2), tables, maxConcurrency)
}

// regionBytes is the size of a region, by the cluster's version when unknown.
func (p *planner) regionBytes() uint64 {
	if p.in.Cluster.RegionBytes > 0 {
		return p.in.Cluster.RegionBytes
	}
	return p.kv.DefaultRegionBytes
}

// The settings under control: the smallest batch, and a tick short enough that
// a cut is not waited for, yet longer than TiKV's own sampling needs.
const (
	controlBatchSize       = 1
	controlRefreshInterval = 10 * time.Second
)

// plan writes the chosen candidate down as a Plan.
func (p *planner) plan(c candidate) Plan {
	plan := Plan{
		Tier: p.tier.name, Mode: p.opt.Mode, Goal: p.opt.Goal,
		NumThreads: c.threads, Concurrency: c.concurrency, Compression: c.codec,
		CompressionLevel: p.level(c.codec), Checksum: p.opt.Checksum != nil && *p.opt.Checksum,
		ReplicaReadLabel: p.opt.ReplicaReadLabel,
	}
	plan.BatchSize, plan.RefreshInterval = p.controlSettings()
	if p.rateLimited() {
		plan.RateLimitMBPerS = *p.opt.RateLimitMBPerS
	}
	plan.Settings = p.settings(plan)
	plan.Forecast = p.forecast(c)
	plan.Reasons = p.reasons(plan, c)
	plan.Warnings = p.warnings(plan, c)
	plan.Alternatives = p.alternatives(c)
	return plan
}

// level is the level to send: a codec other than zstd ignores it, and 0 means
// the codec's default.
func (p *planner) level(codec string) *int {
	l := p.opt.CompressionLevel
	if l == nil || *l == 0 || codec != CodecZstd {
		return nil
	}
	level := *l
	return &level
}

// controlSettings returns batch size and refresh interval, 0 where TiKV's are
// left alone.
func (p *planner) controlSettings() (batch int, refresh time.Duration) {
	if p.opt.Control {
		batch, refresh = controlBatchSize, controlRefreshInterval
	}
	if p.opt.BatchSize != nil {
		batch = *p.opt.BatchSize
	}
	if p.opt.RefreshInterval != nil {
		refresh = *p.opt.RefreshInterval
	}
	return batch, refresh
}

// settings are the wanted values of every live store, by address.
func (p *planner) settings(plan Plan) []Setting {
	var out []Setting
	for _, s := range p.topo.live {
		out = append(out, SettingsFor(plan, s)...)
	}
	return out
}
