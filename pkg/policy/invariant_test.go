package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/pkg/policy"
)

// randomInput draws a cluster of unequal hosts and a set of options. Every
// value is one that a real cluster may have; unknown ones are among them.
func randomInput(r *rand.Rand) policy.PlanInput {
	versions := []string{"v6.5.3", "v7.1.0", "v7.5.1", "v8.1.0", "v8.5.0", "v8.5.2", "nightly-dirty", ""}
	in := policy.PlanInput{BRVersion: pick(r, versions)}
	c := &in.Cluster
	c.Version, c.Replicas, c.Tables, c.RegionBytes = pick(r, versions), r.IntN(6), r.IntN(3)*r.IntN(5000), uint64(r.IntN(2))*144*policy.MiB
	for h := range 1 + r.IntN(8) {
		name, cores := fmt.Sprintf("10.0.0.%d", h+1), float64(1+r.IntN(128))
		if r.IntN(8) > 0 {
			c.Hosts = append(c.Hosts, policy.Host{Name: name, Cores: cores, BaseLoad: r.Float64(), BaseKnown: r.IntN(2) == 0})
		}
		for i := range 1 + r.IntN(4) {
			c.Stores = append(c.Stores, policy.Store{
				ID: uint64(len(c.Stores) + 1), Address: fmt.Sprintf("%s:%d", name, 20160+i), Host: name,
				State:  pick(r, []policy.StoreState{policy.StoreUp, policy.StoreUp, policy.StoreUp, policy.StoreOffline, policy.StoreTombstone}),
				Silent: r.IntN(10) == 0, TiFlash: r.IntN(10) == 0, LeaderCount: r.IntN(3), Version: c.Version,
				UsedBytes: r.Uint64N(4 * policy.TiB), Cores: float64(r.IntN(3)) * cores / 2,
			})
		}
	}
	in.Options = randomOptions(r)
	return in
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func maybe[T any](r *rand.Rand, v T) *T {
	if r.IntN(4) > 0 {
		return nil
	}
	return &v
}

func randomOptions(r *rand.Rand) policy.Options {
	o := policy.Options{
		Mode: pick(r, []policy.Mode{"", policy.ModeTiered, policy.ModeOptimize, policy.ModeOptimize}),
		Goal: pick(r, []policy.Goal{"", policy.GoalImpact, policy.GoalSpeed, policy.GoalSpace, policy.GoalBalanced}),
		Limits: policy.Limits{
			MaxHostCPU: float64(r.IntN(3)) / 2.5, MaxDuration: time.Duration(r.IntN(3)*r.IntN(30)) * time.Hour,
			MaxGCHold: time.Duration(r.IntN(2)*r.IntN(30)) * time.Hour, MaxQPSDrop: float64(r.IntN(2)) * r.Float64() / 3,
			MaxP95Rise: float64(r.IntN(2)) * r.Float64() / 2, StorageMBPerS: float64(r.IntN(2) * r.IntN(1500)), NetworkMBPerS: float64(r.IntN(2) * r.IntN(300)),
		},
		Control: r.IntN(2) == 0, AllowUnusual: r.IntN(4) == 0,
		NumThreads: maybe(r, 1+r.IntN(8)), Concurrency: maybe(r, 4+r.IntN(253)), BatchSize: maybe(r, 1+r.IntN(16)),
		RefreshInterval: maybe(r, time.Duration(1+r.IntN(120))*time.Second), Compression: maybe(r, pick(r, []string{"lz4", "snappy", "zstd"})),
		CompressionLevel: maybe(r, r.IntN(30)-7), Checksum: maybe(r, r.IntN(2) == 0),
		Medium: pick(r, []policy.Medium{"", policy.MediumNAS, policy.MediumS3, policy.MediumNVMe}), BaseLoad: maybe(r, r.Float64()),
		RatePerThread: float64(r.IntN(2)) * 40 * r.Float64(),
	}
	if r.IntN(10) == 0 {
		o.RateLimitMBPerS = new(r.IntN(200))
	}
	if r.IntN(2) == 0 {
		o.Limits = policy.Limits{}
	}
	return o
}

func TestEveryPlanKeepsItsPromises(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var plans, unmets, refused int
	for range 3000 {
		in := randomInput(r)
		plan, err := policy.MakePlan(in)
		var u *policy.UnmetError
		var bad *policy.InputError
		switch {
		case err == nil:
			plans++
			checkPlan(t, in, plan)
		case errors.As(err, &u):
			unmets++
			checkUnmet(t, in, u)
		case errors.As(err, &bad):
			refused++
			if len(bad.Problems) == 0 {
				t.Error("an InputError without a problem")
			}
		default:
			t.Errorf("untyped error: %v", err)
		}
		checkOrder(t, r, in, plan, err)
		if t.Failed() {
			t.Fatalf("input: %+v", in)
		}
	}
	t.Logf("%d plans, %d unmet, %d refused", plans, unmets, refused)
	if plans < 1000 || unmets < 500 || refused < 300 {
		t.Errorf("the inputs do not reach every outcome: %d plans, %d unmet, %d refused", plans, unmets, refused)
	}
}

func checkPlan(t *testing.T, in policy.PlanInput, p policy.Plan) {
	t.Helper()
	checkSettings(t, in, p)
	checkPlanLimits(t, in, p)
	reasons := map[string]bool{}
	for _, r := range p.Reasons {
		reasons[r.Item] = r.Text != ""
	}
	for _, item := range []string{
		"tier", "num_threads", "concurrency", "batch_size", "refresh_interval", "compression", "compression_level", "checksum", "ratelimit",
		"replica_read_label", "rate_mb_per_s", "duration", "host_cpu_ratio", "gc_hold", "control_lag", "qps_drop", "p95_rise",
	} {
		if !reasons[item] {
			t.Errorf("no reason for %s", item)
		}
	}
	f := p.Forecast
	for _, r := range []policy.Range{f.QPSDrop, f.P95Rise} {
		if !(0 <= r.Low && r.Low <= r.High) || r.Source == "" {
			t.Errorf("not a range: %+v", r)
		}
	}
	if !(f.RateMBPerS > 0) || math.IsInf(f.RateMBPerS, 0) || f.Duration < 0 || f.ControlLag <= 0 {
		t.Errorf("not a forecast: %+v", f)
	}
	if len(p.Alternatives) > 6 {
		t.Errorf("%d alternatives", len(p.Alternatives))
	}
	for _, a := range p.Alternatives {
		if a.Why == "" || a.NumThreads == p.NumThreads && a.Concurrency == p.Concurrency && a.Compression == p.Compression {
			t.Errorf("not an alternative: %+v", a)
		}
	}
	checkJSON(t, p)
}

func checkSettings(t *testing.T, in policy.PlanInput, p policy.Plan) {
	t.Helper()
	want := map[policy.SettingKey]bool{}
	for _, s := range in.Cluster.BackupStores() {
		if s.Silent {
			continue
		}
		for item, set := range map[string]bool{
			policy.ItemNumThreads: true, policy.ItemBatchSize: p.BatchSize > 0, policy.ItemRefreshInterval: p.RefreshInterval > 0,
		} {
			if set {
				want[policy.SettingKey{Instance: s.Address, Name: item}] = true
			}
		}
	}
	stores := map[string]policy.Store{}
	for _, s := range in.Cluster.Stores {
		stores[s.Address] = s
	}
	for _, s := range p.Settings {
		if !want[s.SettingKey] || stores[s.Instance].ID != s.StoreID {
			t.Errorf("setting %s twice, for the wrong store or for none that is backed up", s)
		}
		delete(want, s.SettingKey)
		if s.Name != policy.ItemNumThreads {
			continue
		}
		n, err := strconv.Atoi(s.Want)
		if cores := stores[s.Instance].Cores; err != nil || n < 1 || n > p.NumThreads || cores > 0 && n > max(1, int(cores)) {
			t.Errorf("%s with %v cores and T=%d", s, cores, p.NumThreads)
		}
	}
	if len(want) > 0 {
		t.Errorf("no setting for %v", want)
	}
}

func checkPlanLimits(t *testing.T, in policy.PlanInput, p policy.Plan) {
	t.Helper()
	l, f := in.Options.Limits, p.Forecast
	above := func(got, limit float64) bool { return limit > 0 && got > limit*(1+1e-9) }
	if above(f.Duration.Seconds(), l.MaxDuration.Seconds()) || above(f.GCHold.Seconds(), l.MaxGCHold.Seconds()) ||
		above(f.HostCPURatio, l.MaxHostCPU) || above(f.QPSDrop.High, l.MaxQPSDrop) || above(f.P95Rise.High, l.MaxP95Rise) ||
		above(f.RateMBPerS, l.StorageMBPerS) {
		t.Errorf("a limit is broken: %+v by %+v", l, f)
	}
	if b := in.Options.BaseLoad; b != nil && above(f.HostCPURatio+*b, l.MaxHostCPU) {
		t.Errorf("host CPU %v on a base of %v breaks %v", f.HostCPURatio, *b, l.MaxHostCPU)
	}
	if p.NumThreads > 8 && !in.Options.AllowUnusual {
		t.Errorf("T=%d without allow_unusual", p.NumThreads)
	}
}

func checkUnmet(t *testing.T, in policy.PlanInput, u *policy.UnmetError) {
	t.Helper()
	if len(u.Breaches) == 0 || len(u.Remedies) == 0 || u.Nearest.NumThreads < 1 {
		t.Errorf("UnmetError does not say what is broken, what comes nearest and what would do: %+v", u)
	}
	for _, b := range u.Breaches {
		if !(b.Got > b.Max) {
			t.Errorf("%s is not broken: %+v", b.Limit, b)
		}
	}
	// The nearest plan is a real one: given its values and no limits it is made.
	o := in.Options
	o.Limits, o.AllowUnusual = policy.Limits{}, true
	o.NumThreads, o.Concurrency, o.Compression = &u.Nearest.NumThreads, &u.Nearest.Concurrency, &u.Nearest.Compression
	p := mustPlan(t, policy.PlanInput{Cluster: in.Cluster, BRVersion: in.BRVersion, Options: o})
	if p.Forecast != u.Nearest.Forecast {
		t.Errorf("nearest: forecast %+v, planned %+v", u.Nearest.Forecast, p.Forecast)
	}
}

func checkJSON(t *testing.T, p policy.Plan) {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var back policy.Plan
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(p, back) { // cmp would take most of the test's time
		t.Errorf("JSON does not bring the plan back (-made +read):\n%s", cmp.Diff(p, back))
	}
}

// checkOrder plans again with stores and hosts in another order.
func checkOrder(t *testing.T, r *rand.Rand, in policy.PlanInput, plan policy.Plan, planErr error) {
	t.Helper()
	c := in.Cluster
	c.Stores, c.Hosts = slices.Clone(c.Stores), slices.Clone(c.Hosts)
	r.Shuffle(len(c.Stores), func(i, j int) { c.Stores[i], c.Stores[j] = c.Stores[j], c.Stores[i] })
	r.Shuffle(len(c.Hosts), func(i, j int) { c.Hosts[i], c.Hosts[j] = c.Hosts[j], c.Hosts[i] })
	in.Cluster = c
	again, err := policy.MakePlan(in)
	if !reflect.DeepEqual(plan, again) || fmt.Sprint(err) != fmt.Sprint(planErr) {
		t.Errorf("another order, another plan: %v, %v\n%s", planErr, err, cmp.Diff(plan, again))
	}
}

func TestMoreThreadsNeverTakeLonger(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		in := randomInput(r)
		in.Options = policy.Options{AllowUnusual: true}
		before := time.Duration(math.MaxInt64)
		for threads := 1; threads <= 32; threads++ {
			in.Options.NumThreads = &threads
			plan, err := policy.MakePlan(in)
			if err != nil {
				break // no store to plan for
			}
			if plan.Forecast.Duration > before {
				t.Fatalf("T=%d takes %s, one less %s: %+v", threads, plan.Forecast.Duration, before, in.Cluster)
			}
			before = plan.Forecast.Duration
		}
	}
}

func TestTheInputIsLeftAsItWas(t *testing.T) {
	in := policy.PlanInput{Cluster: case38(), Options: policy.Options{Control: true, CompressionLevel: new(3), Compression: new("zstd")}}
	in.Cluster.Warnings = make([]string, 1, 100)
	plan := mustPlan(t, in)
	*plan.CompressionLevel = 7
	if diff := cmp.Diff(case38().Stores, in.Cluster.Stores); diff != "" || *in.Options.CompressionLevel != 3 {
		t.Errorf("level is now %d, stores changed:\n%s", *in.Options.CompressionLevel, diff)
	}
	if in.Cluster.Warnings[:2][1] != "" {
		t.Error("the plan's warnings were appended into the cluster's")
	}
}
