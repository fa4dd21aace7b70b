package policy_test

import (
	"math"
	"strings"
	"testing"

	"github.com/brctl/brctl/pkg/policy"
)

// impactAt plans T threads on one host of 24 cores with one TiKV, so that T = 3
// is the knee (1/8 of the host's third) and T = 8 the full intensity.
func impactAt(t *testing.T, threads int, medium policy.Medium, base float64, codec string) policy.Forecast {
	t.Helper()
	c := offline(t, policy.OfflineSpec{Bytes: policy.TiB, Hosts: 1, TiKVPerHost: 1, VCores: 24, Version: "v6.5.3"})
	return mustPlan(t, policy.PlanInput{Cluster: c, Options: policy.Options{
		NumThreads: &threads, Medium: medium, BaseLoad: &base, Compression: &codec,
	}}).Forecast
}

func TestFullIntensityReachesTheMeasuredHighEnd(t *testing.T) {
	tests := []struct {
		medium   policy.Medium
		base     float64
		qps, p95 float64
	}{
		{policy.MediumNVMe, 0.65, 0.25, 0.335},
		{policy.MediumNAS, 0.65, 0.235, 0.30},
		{policy.MediumNVMe, 0.25, 0.155, 0.445},
		{policy.MediumNAS, 0.25, 0.118, 0.21},
		{policy.MediumS3, 0.25, 0.118, 0.21},
		{policy.MediumNAS, 0.45, (0.235 + 0.118) / 2, (0.30 + 0.21) / 2},
		{policy.MediumNAS, 0.90, 0.235, 0.30},
		{policy.MediumNAS, 0.05, 0.118, 0.21},
	}
	for _, tt := range tests {
		f := impactAt(t, 8, tt.medium, tt.base, "lz4")
		if math.Abs(f.QPSDrop.High-tt.qps) > 1e-9 || math.Abs(f.P95Rise.High-tt.p95) > 1e-9 {
			t.Errorf("%s at %v: got QPS %v, p95 %v; want %v, %v", tt.medium, tt.base, f.QPSDrop.High, f.P95Rise.High, tt.qps, tt.p95)
		}
		outside := tt.base < 0.25 || tt.base > 0.65
		if strings.Contains(f.QPSDrop.Source, "extrapolated") != outside || strings.Contains(f.P95Rise.Source, "extrapolated") != outside {
			t.Errorf("base %v: extrapolation is marked wrongly: %s", tt.base, f.QPSDrop.Source)
		}
	}
}

func TestImpactIsLinearBetweenNothingKneeAndFull(t *testing.T) {
	// T = 1 of 24 cores is an intensity of 1/8: the low end of the range.
	if got := impactAt(t, 1, policy.MediumNAS, 0.65, "lz4").QPSDrop.High; math.Abs(got-0.105) > 1e-9 {
		t.Errorf("at the knee: got %v, want the range's low end 0.105", got)
	}
	// T = 5: 5/8, four sevenths of the way from knee to full.
	f := impactAt(t, 5, policy.MediumNAS, 0.65, "lz4")
	if want := 0.105 + 0.13*4/7; math.Abs(f.QPSDrop.High-want) > 1e-9 {
		t.Errorf("between: got %v, want %v", f.QPSDrop.High, want)
	}
	// The low end is the same curve at 640/1395 of the intensity.
	if want := 0.105 + 0.13*(5.0/8*640/1395-1.0/8)*8/7; math.Abs(f.QPSDrop.Low-want) > 1e-9 {
		t.Errorf("low end: got %v, want %v", f.QPSDrop.Low, want)
	}
	// Below the knee the low end goes to nothing in a line.
	if got, want := impactAt(t, 1, policy.MediumNAS, 0.65, "lz4").QPSDrop.Low, 0.105*640/1395; math.Abs(got-want) > 1e-9 {
		t.Errorf("below the knee: got %v, want %v", got, want)
	}
}

func TestZstdCostsFourPointsOfQPSAndNoLatency(t *testing.T) {
	lz4, zstd := impactAt(t, 8, policy.MediumNAS, 0.65, "lz4"), impactAt(t, 8, policy.MediumNAS, 0.65, "zstd")
	if got := zstd.QPSDrop.High - lz4.QPSDrop.High; math.Abs(got-0.04) > 1e-9 {
		t.Errorf("QPS: got %v more, want 0.04", got)
	}
	// Below the knee the extra cost goes to nothing with everything else.
	gentle := impactAt(t, 1, policy.MediumNAS, 0.65, "zstd").QPSDrop
	if want := (0.105 + 0.04) * 640 / 1395; math.Abs(gentle.Low-want) > 1e-9 {
		t.Errorf("QPS below the knee: got %v, want %v", gentle.Low, want)
	}
	if zstd.P95Rise != lz4.P95Rise {
		t.Errorf("p95: got %v for zstd, want %v as for lz4", zstd.P95Rise, lz4.P95Rise)
	}
	if !strings.Contains(zstd.QPSDrop.Source, "zstd") || strings.Contains(lz4.QPSDrop.Source, "zstd") {
		t.Errorf("source of zstd's range: %s", zstd.QPSDrop.Source)
	}
}

func TestTheWorstHostCountsForTheImpact(t *testing.T) {
	c := offline(t, policy.OfflineSpec{Bytes: policy.TiB, Hosts: 2, TiKVPerHost: 1, VCores: 24, Version: "v6.5.3"})
	c.Hosts[0].BaseLoad, c.Hosts[0].BaseKnown = 0.25, true
	c.Hosts[1].BaseLoad, c.Hosts[1].BaseKnown = 0.65, true
	f := mustPlan(t, policy.PlanInput{Cluster: c, Options: policy.Options{NumThreads: new(8)}}).Forecast
	if f.QPSDrop.High != 0.235 || !strings.Contains(f.QPSDrop.Source, "base load 65% of host host2") {
		t.Errorf("got %+v, want host2's", f.QPSDrop)
	}
}

func TestUnknownCoresMeanTheFullMeasuredImpact(t *testing.T) {
	c := offline(t, policy.OfflineSpec{Bytes: policy.TiB, Hosts: 1, TiKVPerHost: 1, VCores: 24, Version: "v6.5.3"})
	c.Hosts, c.Stores[0].Cores = nil, 0
	p := mustPlan(t, policy.PlanInput{Cluster: c})
	if p.Forecast.QPSDrop.High != 0.235 || p.Forecast.HostCPURatio != 0 || p.Forecast.WorstHost != "" {
		t.Errorf("got %+v", p.Forecast)
	}
	wantWarning(t, p, "cores of the host unknown, so its CPU share is not forecast: host1")
	wantWarning(t, p, "base load assumed, not measured: host1 at 65%")
	wantWarning(t, p, "cores unknown, so TiKV may use another num-threads than asked; read back what it uses: host1:20160")
}

func TestTheManualGivesASecondOpinionByTotalCPU(t *testing.T) {
	for total, want := range map[float64]struct {
		high float64
		ok   bool
	}{0: {0, true}, 0.60: {0, true}, 0.61: {0.10, true}, 0.75: {0.10, true}, 0.80: {0.20, true}, 0.81: {0, false}} {
		if got, ok := policy.ManualImpact(total); ok != want.ok || got.High != want.high || ok && got.Source == "" {
			t.Errorf("total %v: got %+v, %t; want up to %v, %t", total, got, ok, want.high, want.ok)
		}
	}
	for base, want := range map[float64]struct{ reason, warning string }{ // the backup adds 16.7 %
		0.40: {"total CPU of up to 56.7% on host host1, expects almost none", ""},
		0.60: {"total CPU of up to 76.7% on host host1, expects at most about 20%", ""},
		0.70: {"expects more than 20%, without a figure", "gives no estimate above 80%"},
		0.90: {"expects more than 20%, without a figure", "would need 106.7% of its CPU"},
	} {
		p := mustPlan(t, policy.PlanInput{Cluster: example1(t), Options: policy.Options{BaseLoad: &base}})
		if why := reason(p, "qps_drop"); !strings.Contains(why, want.reason) {
			t.Errorf("base %v: got %q, want %q in it", base, why, want.reason)
		}
		wantWarning(t, p, want.warning)
		if want.warning == "" && len(p.Warnings) > 0 {
			t.Errorf("base %v: unexpected warnings %q", base, p.Warnings)
		}
	}
}

func TestBothPriorsOfTheRateAreVisible(t *testing.T) {
	p := mustPlan(t, policy.PlanInput{Cluster: example1(t), Options: policy.Options{RatePerThread: 12, RateSource: "learned from 12 runs"}})
	if p.Forecast.RateMBPerS != 288 {
		t.Errorf("got %v MB/s, want 288", p.Forecast.RateMBPerS)
	}
	why := reason(p, "rate_mb_per_s")
	for _, part := range []string{"12 MB/s per thread (learned from 12 runs)", "measurements say 6 MB/s per thread", "manual says about 20 MB/s", "would be 480 MB/s"} {
		if !strings.Contains(why, part) {
			t.Errorf("%q is missing in %q", part, why)
		}
	}
}
