package policy_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/pkg/policy"
)

func unmet(t *testing.T, in policy.PlanInput) *policy.UnmetError {
	t.Helper()
	plan, err := policy.MakePlan(in)
	var u *policy.UnmetError
	if !errors.As(err, &u) {
		t.Fatalf("got plan T=%d and error %v, want an UnmetError", plan.NumThreads, err)
	}
	return u
}

func TestEachGoalFindsItsPlan(t *testing.T) {
	// 24272.6 s at T = 2; six hours need T = 3 (16181.7 s).
	limits := policy.Limits{MaxDuration: 6 * time.Hour, MaxHostCPU: 0.90}
	tests := []struct {
		br               string
		goal             policy.Goal
		tables           int
		threads, streams int
		codec            string
	}{
		{"v6.5.3", policy.GoalImpact, 0, 3, 4, "lz4"},
		{"v6.5.3", policy.GoalBalanced, 0, 3, 16, "lz4"},
		{"v6.5.3", policy.GoalSpace, 0, 3, 16, "zstd"},
		{"v6.5.3", policy.GoalSpeed, 0, 5, 16, "snappy"}, // 0.40 + 5·4/48 = 0.817; T = 6 is the limit exactly
		{"v6.5.3", policy.GoalSpeed, 100, 5, 100, "snappy"},
		{"v6.5.3", policy.GoalSpeed, 5000, 5, 256, "snappy"},
		{"v6.5.3", policy.GoalSpeed, 2, 5, 4, "snappy"},
		{"v8.5.0", policy.GoalSpeed, 5000, 5, 16, "snappy"}, // streams per store: tables do not matter
	}
	for _, tt := range tests {
		c := example1(t)
		c.Tables = tt.tables
		base := 0.45
		p := mustPlan(t, policy.PlanInput{Cluster: c, BRVersion: tt.br, Options: policy.Options{
			Mode: policy.ModeOptimize, Goal: tt.goal, Limits: limits, BaseLoad: &base,
		}})
		if p.NumThreads != tt.threads || p.Concurrency != tt.streams || p.Compression != tt.codec {
			t.Errorf("goal %s, %d tables: got T=%d C=%d %s, want T=%d C=%d %s", tt.goal, tt.tables,
				p.NumThreads, p.Concurrency, p.Compression, tt.threads, tt.streams, tt.codec)
		}
	}
}

func TestALimitMetExactlyIsMet(t *testing.T) {
	c := offline(t, policy.OfflineSpec{Bytes: policy.TiB, Hosts: 1, TiKVPerHost: 1, VCores: 10, Version: "v6.5.3"})
	noisy := mustPlan(t, policy.PlanInput{Cluster: c, Options: policy.Options{ // 0.1 + 2/10 is a little above 0.3 in binary
		BaseLoad: new(0.1), Limits: policy.Limits{MaxHostCPU: 0.3},
	}})
	if noisy.NumThreads != 2 {
		t.Errorf("got T=%d, want the tier's 2", noisy.NumThreads)
	}
	p := mustPlan(t, policy.PlanInput{Cluster: example1(t), Options: policy.Options{
		Mode: policy.ModeOptimize, Goal: policy.GoalSpeed, BaseLoad: new(0.4), Limits: policy.Limits{MaxHostCPU: 0.9},
	}})
	if p.NumThreads != 6 { // 0.4 + 6·4/48
		t.Errorf("got T=%d, want 6", p.NumThreads)
	}
}

func TestTieredModeLowersThreadsToACeilingOnly(t *testing.T) {
	c := offline(t, policy.OfflineSpec{Bytes: 30 * policy.TiB, Hosts: 6, TiKVPerHost: 4, VCores: 48, Version: "v6.5.3"})
	for limits, want := range map[policy.Limits]int{
		{StorageMBPerS: 576}: 4, // exactly the tier's rate
		{StorageMBPerS: 575}: 3,
		{NetworkMBPerS: 50}:  2, // per host: 4 instances × 2 × 6 = 48
		{NetworkMBPerS: 24}:  1,
	} {
		p := mustPlan(t, policy.PlanInput{Cluster: c, Options: policy.Options{Limits: limits}})
		if p.NumThreads != want {
			t.Errorf("%+v: got T=%d, want %d", limits, p.NumThreads, want)
		}
		if said := strings.Contains(reason(p, "num_threads"), "ceiling"); said != (want < 4) {
			t.Errorf("%+v: reason for num_threads is %q", limits, reason(p, "num_threads"))
		}
	}
	u := unmet(t, policy.PlanInput{Cluster: c, Options: policy.Options{Limits: policy.Limits{NetworkMBPerS: 23}}})
	if u.Nearest.NumThreads != 1 || u.Breaches[0].Limit != "network_mb_per_s" || u.Breaches[0].Got != 24 {
		t.Errorf("T=1 is above the ceiling; got %v", u)
	}
	_ = unmet(t, policy.PlanInput{Cluster: c, Options: policy.Options{NumThreads: new(4), Limits: policy.Limits{StorageMBPerS: 575}}})
}

func reason(p policy.Plan, item string) string {
	for _, r := range p.Reasons {
		if r.Item == item {
			return r.Text
		}
	}
	return ""
}

func TestUnmetLimitsSayHowFarAndWhatWouldDo(t *testing.T) {
	day := policy.Limits{MaxDuration: 4 * time.Hour, MaxHostCPU: 0.70}
	tests := []struct {
		name string
		o    policy.Options
		want string
	}{
		{
			"the tier is too slow and optimize is not",
			policy.Options{Limits: policy.Limits{MaxDuration: 4 * time.Hour}, BaseLoad: new(0.45)},
			"the tier's plan does not meet the limits: num-threads 2, concurrency 16, lz4: " +
				"max_duration is 6h44m33s, 2h44m33s over 4h0m0s; what would: mode optimize, which takes num-threads 4, concurrency 16, lz4",
		},
		{
			"two limits exclude each other",
			policy.Options{Mode: policy.ModeOptimize, Limits: day, BaseLoad: new(0.45)},
			"no plan meets the limits; nearest: num-threads 4, concurrency 16, lz4: " +
				"max_host_cpu is 78.3%, 8.3% over 70%; what would: " +
				"max_host_cpu >= 78.4%, which allows num-threads 4, concurrency 16, lz4; or " +
				"max_duration >= 4h29m42s, which allows num-threads 3, concurrency 16, lz4",
		},
		{
			"nearness is judged in proportion, not in seconds",
			policy.Options{Mode: policy.ModeOptimize, Limits: policy.Limits{MaxDuration: 4*time.Hour + 15*time.Minute, MaxHostCPU: 0.70}, BaseLoad: new(0.45)},
			"no plan meets the limits; nearest: num-threads 3, concurrency 16, lz4: " +
				"max_duration is 4h29m42s, 14m42s over 4h15m0s; what would: " +
				"max_host_cpu >= 78.4%, which allows num-threads 4, concurrency 16, lz4; or " +
				"max_duration >= 4h29m42s, which allows num-threads 3, concurrency 16, lz4",
		},
		{
			"a given number of threads is in the way",
			policy.Options{Mode: policy.ModeOptimize, NumThreads: new(1), Limits: policy.Limits{MaxDuration: 4 * time.Hour}},
			"no plan meets the limits; nearest: num-threads 1, concurrency 16, lz4: " +
				"max_duration is 13h29m5s, 9h29m5s over 4h0m0s; what would: " +
				"max_duration >= 13h29m6s, which allows num-threads 1, concurrency 16, lz4; or " +
				"leave num_threads to brctl, which allows num-threads 4, concurrency 16, lz4",
		},
		{
			"more threads than usual would do",
			policy.Options{Mode: policy.ModeOptimize, Limits: policy.Limits{MaxDuration: time.Hour}},
			"no plan meets the limits; nearest: num-threads 8, concurrency 16, lz4: " +
				"max_duration is 1h41m8s, 41m8s over 1h0m0s; what would: " +
				"max_duration >= 1h41m9s, which allows num-threads 8, concurrency 16, lz4; or " +
				"allow_unusual, which allows num-threads 14, concurrency 16, lz4",
		},
		{
			"both time limits break together",
			policy.Options{Mode: policy.ModeOptimize, AllowUnusual: true, NumThreads: new(8), Compression: new("zstd"),
				Limits: policy.Limits{MaxDuration: time.Minute, MaxGCHold: time.Minute}},
			"no plan meets the limits; nearest: num-threads 8, concurrency 16, zstd: " +
				"max_duration is 1h41m8s, 1h40m8s over 1m0s, max_gc_hold is 1h41m8s, 1h40m8s over 1m0s; what would: " +
				"all of max_duration >= 1h41m9s and max_gc_hold >= 1h41m9s, which allow num-threads 8, concurrency 16, zstd",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u := unmet(t, policy.PlanInput{Cluster: example1(t), Options: tt.o})
			if diff := cmp.Diff(tt.want, u.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestARemedyCopiedIntoTheLimitsWorks(t *testing.T) {
	limits := policy.Limits{MaxDuration: 4 * time.Hour, MaxHostCPU: 0.70}
	o := policy.Options{Mode: policy.ModeOptimize, Limits: limits, BaseLoad: new(0.45)}
	_ = unmet(t, policy.PlanInput{Cluster: example1(t), Options: o})

	o.Limits.MaxHostCPU, _ = policy.ParseRatio("78.4%")
	if p := mustPlan(t, policy.PlanInput{Cluster: example1(t), Options: o}); p.NumThreads != 4 {
		t.Errorf("max_host_cpu 78.4%%: got T=%d, want 4", p.NumThreads)
	}
	o.Limits = limits
	o.Limits.MaxDuration, _ = time.ParseDuration("4h29m42s")
	if p := mustPlan(t, policy.PlanInput{Cluster: example1(t), Options: o}); p.NumThreads != 3 {
		t.Errorf("max_duration 4h29m42s: got T=%d, want 3", p.NumThreads)
	}
}

func TestImpactLimitsAreJudgedByTheHighEnd(t *testing.T) {
	o := policy.Options{Mode: policy.ModeOptimize, Goal: policy.GoalSpeed, BaseLoad: new(0.65), Limits: policy.Limits{MaxQPSDrop: 0.15}}
	p := mustPlan(t, policy.PlanInput{Cluster: example1(t), Options: o})
	if p.Forecast.QPSDrop.High > 0.15 || p.Forecast.QPSDrop.High < 0.12 {
		t.Errorf("got T=%d with a QPS drop of up to %v, want the most below 0.15", p.NumThreads, p.Forecast.QPSDrop.High)
	}
	o.NumThreads = new(p.NumThreads + 1)
	if u := unmet(t, policy.PlanInput{Cluster: example1(t), Options: o}); u.Breaches[0].Limit != "max_qps_drop" {
		t.Errorf("one thread more: got %v", u)
	}
}

func TestZstdIsRefusedWhereItsExtraCostBreaksTheLimit(t *testing.T) {
	o := policy.Options{Mode: policy.ModeOptimize, Goal: policy.GoalSpace, NumThreads: new(4), BaseLoad: new(0.65), Limits: policy.Limits{MaxQPSDrop: 0.24}}
	if p := mustPlan(t, policy.PlanInput{Cluster: example1(t), Options: o}); p.Compression != "snappy" {
		t.Errorf("got %s at %v, want snappy: zstd would be at 27.5%%", p.Compression, p.Forecast.QPSDrop.High)
	}
}

func TestUnknownCoresAreNotSearchedBeyondTheUsual(t *testing.T) {
	o := policy.Options{Mode: policy.ModeOptimize, Goal: policy.GoalSpeed, AllowUnusual: true}
	c := example1(t)
	for cores, want := range map[float64]int{0: 8, 12: 12, 200: 64} {
		for i := range c.Stores {
			c.Stores[i].Cores = cores
		}
		for i := range c.Hosts {
			c.Hosts[i].Cores = cores
		}
		if got := mustPlan(t, policy.PlanInput{Cluster: c, Options: o}).NumThreads; got != want {
			t.Errorf("%v cores: got T=%d, want %d", cores, got, want)
		}
	}
}

func TestSpaceGivesUpThreadsBeforeTheSmallestCodec(t *testing.T) {
	o := policy.Options{Mode: policy.ModeOptimize, Goal: policy.GoalSpace, BaseLoad: new(0.65), Limits: policy.Limits{MaxQPSDrop: 0.19}}
	p := mustPlan(t, policy.PlanInput{Cluster: example1(t), Options: o})
	if p.Compression != "zstd" || p.NumThreads != 1 { // zstd at the tier's T = 2 is at 20.1 %
		t.Errorf("got T=%d %s, want T=1 zstd", p.NumThreads, p.Compression)
	}
}

func TestTheNetworkCeilingIsTheBusiestHosts(t *testing.T) {
	c := example1(t)
	c.Stores = c.Stores[:5] // four on host1, one on host2
	o := policy.Options{Mode: policy.ModeOptimize, Goal: policy.GoalSpeed, Limits: policy.Limits{NetworkMBPerS: 72}}
	if got := mustPlan(t, policy.PlanInput{Cluster: c, Options: o}).NumThreads; got != 3 { // 4 instances x 3 x 6 MB/s
		t.Errorf("got T=%d, want 3", got)
	}
}
