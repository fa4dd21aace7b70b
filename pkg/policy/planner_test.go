package policy_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/pkg/policy"
)

func offline(tb testing.TB, spec policy.OfflineSpec) policy.Cluster {
	tb.Helper()
	c, err := policy.OfflineCluster(spec)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// example1 is the first worked example of the 2024 measurements.
func example1(tb testing.TB) policy.Cluster {
	tb.Helper()
	return offline(tb, policy.OfflineSpec{Bytes: 10 * policy.TiB, Hosts: 3, TiKVPerHost: 4, VCores: 48, Version: "v6.5.3"})
}

func mustPlan(tb testing.TB, in policy.PlanInput) policy.Plan {
	tb.Helper()
	plan, err := policy.MakePlan(in)
	if err != nil {
		tb.Fatal(err)
	}
	return plan
}

func TestWorkedExamplesComeOutExactly(t *testing.T) {
	tests := []struct {
		name              string
		spec              policy.OfflineSpec
		tier              string
		threads, streams  int
		rate, secs, share float64
	}{
		{"10 TB on 3 hosts", policy.OfflineSpec{Bytes: 10 * policy.TiB, Hosts: 3, TiKVPerHost: 4, VCores: 48}, "small", 2, 16, 144, 24272.6, 8.0 / 48},
		{"30 TB on 6 hosts", policy.OfflineSpec{Bytes: 30 * policy.TiB, Hosts: 6, TiKVPerHost: 4, VCores: 48}, "medium", 4, 64, 576, 18204.4, 16.0 / 48},
		{"60 TB on 6 hosts", policy.OfflineSpec{Bytes: 60 * policy.TiB, Hosts: 6, TiKVPerHost: 4, VCores: 96}, "large", 4, 128, 576, 36408.9, 16.0 / 96},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := mustPlan(t, policy.PlanInput{Cluster: offline(t, tt.spec)})
			if got.Tier != tt.tier || got.NumThreads != tt.threads || got.Concurrency != tt.streams || got.Compression != "lz4" || got.Checksum {
				t.Errorf("got %s T=%d C=%d %s checksum=%t", got.Tier, got.NumThreads, got.Concurrency, got.Compression, got.Checksum)
			}
			f := got.Forecast
			if f.RateMBPerS != tt.rate {
				t.Errorf("rate: got %v MB/s, want %v", f.RateMBPerS, tt.rate)
			}
			if math.Abs(f.Duration.Seconds()-tt.secs) > 0.05 || f.GCHold != f.Duration {
				t.Errorf("duration: got %v s, GC hold %s, want %v s", f.Duration.Seconds(), f.GCHold, tt.secs)
			}
			if math.Abs(f.HostCPURatio-tt.share) > 1e-12 {
				t.Errorf("host CPU: got %v, want %v", f.HostCPURatio, tt.share)
			}
		})
	}
}

func TestBoundariesBelongToTheLowerTier(t *testing.T) {
	for size, want := range map[uint64]string{
		1: "small", 10 * policy.TiB: "small", 10*policy.TiB + 1: "medium",
		30 * policy.TiB: "medium", 30*policy.TiB + 1: "large", 160 * policy.TiB: "large",
	} {
		c := offline(t, policy.OfflineSpec{Bytes: size, Hosts: 3, TiKVPerHost: 1, VCores: 16})
		if got := mustPlan(t, policy.PlanInput{Cluster: c}).Tier; got != want {
			t.Errorf("%d bytes: got tier %s, want %s", size, got, want)
		}
	}
}

func TestGoalPicksTheCodecInsideTheTier(t *testing.T) {
	for goal, want := range map[policy.Goal]string{
		"": "lz4", policy.GoalImpact: "lz4", policy.GoalBalanced: "lz4", policy.GoalSpeed: "snappy", policy.GoalSpace: "zstd",
	} {
		got := mustPlan(t, policy.PlanInput{Cluster: example1(t), Options: policy.Options{Goal: goal}})
		if got.Compression != want || got.NumThreads != 2 || got.Concurrency != 16 {
			t.Errorf("goal %q: got T=%d C=%d %s, want 2, 16, %s", goal, got.NumThreads, got.Concurrency, got.Compression, want)
		}
	}
}

func TestGivenValuesWin(t *testing.T) {
	o := policy.Options{
		NumThreads: new(3), Concurrency: new(7), BatchSize: new(2), RefreshInterval: new(90 * time.Second),
		Compression: new("zstd"), CompressionLevel: new(16), Checksum: new(true),
	}
	for _, o.Mode = range []policy.Mode{policy.ModeTiered, policy.ModeOptimize} {
		for _, o.Control = range []bool{false, true} {
			p := mustPlan(t, policy.PlanInput{Cluster: example1(t), Options: o})
			if p.NumThreads != 3 || p.Concurrency != 7 || p.BatchSize != 2 || p.RefreshInterval != 90*time.Second ||
				p.Compression != "zstd" || p.CompressionLevel == nil || *p.CompressionLevel != 16 || !p.Checksum {
				t.Errorf("mode %s, control %t: got %+v", o.Mode, o.Control, p)
			}
			want := []string{"3", "2", "1m30s"}
			if got := wants(p.Settings[:3]); !cmp.Equal(got, want) {
				t.Errorf("settings of the first instance: got %v, want %v", got, want)
			}
		}
	}
}

func wants(settings []policy.Setting) []string {
	var out []string
	for _, s := range settings {
		out = append(out, s.Want)
	}
	return out
}

func TestThreadsAreClampedPerInstanceAndSaidSo(t *testing.T) {
	c := example1(t)
	c.Stores[0].Cores = 2.9 // TiKV takes the integer part
	c.Stores[1].Cores = 0.5 // and never less than one
	p := mustPlan(t, policy.PlanInput{Cluster: c, Options: policy.Options{NumThreads: new(4)}})
	if got, want := wants(p.Settings[:3]), []string{"2", "1", "4"}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	wantWarning(t, p, "num-threads lowered to the instance's cores: host1:20160 to 2, host1:20161 to 1")
	if p.Forecast.SlowestStore != "host1:20161" {
		t.Errorf("slowest store: got %s, want the one with one thread", p.Forecast.SlowestStore)
	}
	if got, want := p.Forecast.RateMBPerS, 6.0*(2+1+10*4); got != want {
		t.Errorf("rate: got %v, want %v", got, want)
	}
}

func TestAHostsCoresBoundInstancesWhoseOwnAreUnknown(t *testing.T) {
	c := example1(t)
	for i := range c.Stores {
		c.Stores[i].Cores = 0
	}
	c.Hosts[0].Cores = 3
	p := mustPlan(t, policy.PlanInput{Cluster: c, Options: policy.Options{NumThreads: new(4)}})
	if got, want := wants(p.Settings), []string{"3", "3", "3", "3", "4", "4", "4", "4", "4", "4", "4", "4"}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestHostsAreFoundByTheirNameNotByTheAddress(t *testing.T) {
	c := policy.Cluster{Version: "v6.5.3", Replicas: 3,
		Hosts: []policy.Host{{Name: "z", Cores: 4, BaseKnown: true}, {Name: "m", Cores: 32, BaseKnown: true}, {Name: "a", Cores: 64, BaseKnown: true}},
		Stores: []policy.Store{
			{ID: 1, Address: "10.0.0.1:1", Host: "z", State: policy.StoreUp, Cores: 4},
			{ID: 2, Address: "10.0.0.2:1", Host: "m", State: policy.StoreUp, Cores: 32},
			{ID: 3, Address: "10.0.0.3:1", Host: "a", State: policy.StoreUp, Cores: 64},
		}}
	p := mustPlan(t, policy.PlanInput{Cluster: c})
	if f := p.Forecast; f.WorstHost != "z" || f.HostCPURatio != 0.5 {
		t.Errorf("worst host: got %s at %v, want z at 0.5", f.WorstHost, f.HostCPURatio)
	}
	wantWarning(t, p, "no store reports used bytes: the forecast is empty")
}

func wantWarning(t *testing.T, p policy.Plan, part string) {
	t.Helper()
	if all := strings.Join(p.Warnings, "\n"); !strings.Contains(all, part) {
		t.Errorf("no warning contains %q; got:\n%s", part, all)
	}
}

func TestLevelIsSentForZstdOnly(t *testing.T) {
	tests := []struct {
		codec   string
		level   int
		sent    bool
		warning string
	}{
		{"zstd", 16, true, ""},
		{"zstd", -7, true, ""},
		{"zstd", 0, false, "compression_level 0 is not sent: it means the codec's default"},
		{"lz4", 5, false, "compression_level is not sent: it has no effect on lz4"},
		{"snappy", 5, false, "compression_level is not sent: it has no effect on snappy"},
	}
	for _, tt := range tests {
		p := mustPlan(t, policy.PlanInput{Cluster: example1(t), Options: policy.Options{Compression: &tt.codec, CompressionLevel: &tt.level}})
		if got := p.CompressionLevel != nil && *p.CompressionLevel == tt.level; got != tt.sent {
			t.Errorf("%s level %d: sent is %t, want %t", tt.codec, tt.level, got, tt.sent)
		}
		wantWarning(t, p, tt.warning)
	}
}

func TestRateLimitForcesOneStreamAndBoundsTheForecast(t *testing.T) {
	p := mustPlan(t, policy.PlanInput{Cluster: example1(t), Options: policy.Options{RateLimitMBPerS: new(5), Concurrency: new(16)}})
	if p.Concurrency != 1 || p.RateLimitMBPerS != 5 || p.Forecast.RateMBPerS != 5*12 {
		t.Errorf("got C=%d, ratelimit %d, %v MB/s; want 1, 5, 60", p.Concurrency, p.RateLimitMBPerS, p.Forecast.RateMBPerS)
	}
	wantWarning(t, p, "ratelimit is per TiKV")
	wantWarning(t, p, "the given concurrency is not used")
}

func TestUnequalHostsAreJudgedByTheWorstAndTheSlowest(t *testing.T) {
	c := policy.Cluster{Version: "v8.5.0", Replicas: 3,
		Hosts: []policy.Host{{Name: "a", Cores: 16, BaseLoad: 0.3, BaseKnown: true}, {Name: "b", Cores: 64, BaseLoad: 0.6, BaseKnown: true}},
		Stores: []policy.Store{
			{ID: 1, Address: "a:1", State: policy.StoreUp, UsedBytes: 300 * policy.GiB, Cores: 16},
			{ID: 2, Address: "b:1", State: policy.StoreUp, UsedBytes: 900 * policy.GiB, Cores: 64},
		}}
	f := mustPlan(t, policy.PlanInput{Cluster: c}).Forecast
	if f.WorstHost != "a" || f.HostCPURatio != 2.0/16 {
		t.Errorf("worst host: got %s at %v, want a at 0.125", f.WorstHost, f.HostCPURatio)
	}
	if want := 25600 * time.Second; f.SlowestStore != "b:1" || f.Duration != want {
		t.Errorf("slowest store: got %s in %s, want b:1 in %s", f.SlowestStore, f.Duration, want)
	}
}

func TestBudgetCountsBaseLoadOfTheHost(t *testing.T) { // case 42: six TiKVs on three hosts
	c := offline(t, policy.OfflineSpec{Bytes: policy.TiB, Hosts: 3, TiKVPerHost: 2, VCores: 16, Version: "v8.5.0"})
	for base, want := range map[float64]int{0: 4, 0.25: 2} {
		o := policy.Options{Mode: policy.ModeOptimize, Goal: policy.GoalSpeed, BaseLoad: &base, Limits: policy.Limits{MaxHostCPU: 0.5}}
		if got := mustPlan(t, policy.PlanInput{Cluster: c, Options: o}).NumThreads; got != want {
			t.Errorf("leave half of 16 cores, base %v, two TiKVs: got T=%d, want %d", base, got, want)
		}
	}
}

func case38() policy.Cluster {
	return policy.Cluster{Version: "v7.5.1", Replicas: 3, Stores: []policy.Store{
		{ID: 823752656, Address: "192.0.2.17:3930", Version: "v5.1.0-6-g04e5e8cc8-dirty", State: policy.StoreUp, Silent: true, TiFlash: true, UsedBytes: policy.TiB},
		{ID: 1, Address: "192.0.2.21:20160", Version: "7.5.1", State: policy.StoreUp, LeaderCount: 31396, UsedBytes: policy.TiB, Cores: 8},
		{ID: 4, Address: "192.0.2.22:20160", Version: "7.5.1", State: policy.StoreOffline, LeaderCount: 812, UsedBytes: policy.TiB, Cores: 8},
		{ID: 5, Address: "192.0.2.23:20160", Version: "7.5.1", State: policy.StoreUp, Silent: true, UsedBytes: policy.TiB, Cores: 8},
		{ID: 6, Address: "192.0.2.24:20160", Version: "7.5.1", State: policy.StoreTombstone},
		{ID: 7, Address: "192.0.2.25:20160", Version: "7.5.1", State: policy.StoreOffline, UsedBytes: policy.GiB},
	}}
}

func TestOnlyStoresThatAnswerAndLeadAreSet(t *testing.T) { // case 38
	p := mustPlan(t, policy.PlanInput{Cluster: case38()})
	var ids []uint64
	for _, s := range p.Settings {
		ids = append(ids, s.StoreID)
	}
	if want := []uint64{1, 4}; !cmp.Equal(ids, want) {
		t.Errorf("got settings for %v, want %v", ids, want)
	}
	// One replica of 3 TiB, led by the two stores that answer.
	if got, want := p.Forecast.Duration.Seconds(), 0.5*1024*1024/12; math.Abs(got-want) > 1e-3 {
		t.Errorf("duration: got %v s, want %v s", got, want)
	}
}

func TestNothingIsPlannedWithoutStores(t *testing.T) { // case 45
	silent := case38()
	for i := range silent.Stores {
		silent.Stores[i].Silent = true
	}
	onlyTiFlash := case38()
	onlyTiFlash.Stores = onlyTiFlash.Stores[:1]
	for name, tt := range map[string]struct {
		cluster policy.Cluster
		want    error
	}{
		"no store":                {policy.Cluster{}, policy.ErrNoStores},
		"TiFlash only":            {onlyTiFlash, policy.ErrNoStores},
		"every store is silent":   {silent, policy.ErrAllSilent},
		"offline without leaders": {policy.Cluster{Stores: []policy.Store{{ID: 7, Address: "a:1", State: policy.StoreOffline}}}, policy.ErrNoStores},
	} {
		var input *policy.InputError
		if _, err := policy.MakePlan(policy.PlanInput{Cluster: tt.cluster}); !errors.Is(err, tt.want) || !errors.As(err, &input) {
			t.Errorf("%s: got %v, want an InputError with %v", name, err, tt.want)
		}
	}
}

func TestReplicaReadLabelMustBeCarriedByALiveStore(t *testing.T) {
	c := case38()
	c.Stores[1].Labels = map[string]string{"$mode": "readonly"}
	c.Stores[3].Labels = map[string]string{"zone": "silent"}
	p := mustPlan(t, policy.PlanInput{Cluster: c, Options: policy.Options{ReplicaReadLabel: "$mode:readonly"}})
	if p.ReplicaReadLabel != "$mode:readonly" || p.Forecast.RateMBPerS != 12 || p.Forecast.SlowestStore != "192.0.2.21:20160" {
		t.Errorf("only the labelled store works; got %+v", p.Forecast)
	}
	for label, want := range map[string]string{
		"zone:silent": `no live store carries "zone:silent": br would retry for ever`,
		"zone":        `not a label (got "zone", want key:value)`,
		"a:b:c":       `not a label (got "a:b:c", want key:value)`,
	} {
		_, err := policy.MakePlan(policy.PlanInput{Cluster: c, Options: policy.Options{ReplicaReadLabel: label}})
		if want = "replica_read_label: " + want; err == nil || err.Error() != want {
			t.Errorf("label %q: got %v, want %s", label, err, want)
		}
	}
	_, err := policy.MakePlan(policy.PlanInput{Cluster: c, BRVersion: "v6.5.3", Options: policy.Options{ReplicaReadLabel: "$mode:readonly"}})
	if err == nil || !strings.Contains(err.Error(), "no such flag") {
		t.Errorf("br v6.5.3 has no --replica-read-label; got %v", err)
	}
}

func TestEveryProblemIsReportedAtOnce(t *testing.T) {
	c := example1(t)
	c.Hosts[1].Cores = 0
	_, err := policy.MakePlan(policy.PlanInput{Cluster: c, Options: policy.Options{
		Mode: "fast", Goal: "cheap", Medium: "tape", NumThreads: new(9), Concurrency: new(2), BatchSize: new(0),
		RefreshInterval: new(time.Millisecond), Compression: new("LZ4"), CompressionLevel: new(99), RatePerThread: math.NaN(),
		BaseLoad: new(65.0), RateLimitMBPerS: new(-1), ReplicaReadLabel: "zone",
		Limits: policy.Limits{MaxHostCPU: 80, MaxQPSDrop: -1, MaxP95Rise: math.NaN(), MaxDuration: -1, MaxGCHold: -1, StorageMBPerS: -1, NetworkMBPerS: math.Inf(1)},
	}})
	const want = `mode: unknown (got "fast", want tiered or optimize)
goal: unknown (got "cheap", want impact, speed, space or balanced)
medium: unknown (got "tape", want nas, s3 or nvme)
num_threads: above 8 (got 9): lower it, or set allow_unusual
concurrency: outside 4..256 (got 2): change it, or set allow_unusual
batch_size: below 1 (got 0): TiKV would use its default instead
refresh_interval: not a whole number of milliseconds of at least a second (got 1ms)
compression: unknown (got "LZ4", want lz4, snappy, zstd)
compression_level: outside -7..22 (got 99): br would pass it on unchecked
rate_per_thread: not a rate in MB/s (got NaN)
base_load: not a share (got 65, want 0..1, such as 0.65 for 65%)
ratelimit: below 0 (got -1 MB/s)
limits.max_host_cpu: not a share (got 80, want 0..1, such as 0.65 for 65%)
limits.max_qps_drop: not a share (got -1, want 0..1, such as 0.65 for 65%)
limits.max_p95_rise: not a share (got NaN, want 0..1, such as 0.65 for 65%)
limits.storage_mb_per_s: not a rate in MB/s (got -1)
limits.network_mb_per_s: not a rate in MB/s (got +Inf)
limits.max_duration: below 0 (got -1ns)
limits.max_gc_hold: below 0 (got -1ns)
replica_read_label: not a label (got "zone", want key:value)
cluster.hosts.host2.cores: unknown: configure it, or drop the limits on CPU and impact`
	if err == nil {
		t.Fatal("got no error")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestUnusualValuesNeedPermission(t *testing.T) {
	for _, o := range []policy.Options{{NumThreads: new(9)}, {Concurrency: new(3)}, {Concurrency: new(257)}} {
		if _, err := policy.MakePlan(policy.PlanInput{Cluster: example1(t), Options: o}); err == nil {
			t.Errorf("got no error for %+v", o)
		}
		o.AllowUnusual = true
		mustPlan(t, policy.PlanInput{Cluster: example1(t), Options: o})
	}
}
