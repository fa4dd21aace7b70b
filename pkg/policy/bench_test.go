package policy_test

import (
	"testing"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

func thousandStores(b *testing.B) policy.Cluster {
	b.Helper()
	c := offline(b, policy.OfflineSpec{Bytes: 1000 * policy.TiB, Hosts: 250, TiKVPerHost: 4, VCores: 64, Version: "v8.5.0", Tables: 5000})
	for i := range c.Stores { // unequal, so that nothing is decided early
		c.Stores[i].UsedBytes += uint64(i%7) * 10 * policy.GiB
		c.Stores[i].Cores -= float64(i % 60)
	}
	return c
}

func BenchmarkOptimize1000Stores(b *testing.B) {
	in := policy.PlanInput{Cluster: thousandStores(b), Options: policy.Options{
		Mode: policy.ModeOptimize, Goal: policy.GoalBalanced, BaseLoad: new(0.4),
		Limits: policy.Limits{MaxHostCPU: 0.9, MaxDuration: 300 * time.Hour},
	}}
	for b.Loop() {
		if _, err := policy.MakePlan(in); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOptimize1000StoresUnmet is the longest way: 64 threads searched, no
// plan found, remedies looked for.
func BenchmarkOptimize1000StoresUnmet(b *testing.B) {
	in := policy.PlanInput{Cluster: thousandStores(b), Options: policy.Options{
		Mode: policy.ModeOptimize, Compression: new("zstd"), BaseLoad: new(0.4), AllowUnusual: true,
		Limits: policy.Limits{MaxHostCPU: 0.5, MaxDuration: time.Hour},
	}}
	for b.Loop() {
		if _, err := policy.MakePlan(in); err == nil {
			b.Fatal("got a plan")
		}
	}
}

func BenchmarkTiered1000Stores(b *testing.B) {
	in := policy.PlanInput{Cluster: thousandStores(b), Options: policy.Options{Control: true}}
	for b.Loop() {
		if _, err := policy.MakePlan(in); err != nil {
			b.Fatal(err)
		}
	}
}
