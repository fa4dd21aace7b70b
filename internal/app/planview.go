package app

import (
	"github.com/brctl/brctl/pkg/policy"
)

// PlanView is a plan as it is printed: the JSON is a stable interface, in
// seconds, ratios and MB/s (1 MB = 1024·1024 bytes).
type PlanView struct {
	Tier                   string            `json:"tier"`
	Mode                   policy.Mode       `json:"mode"`
	Goal                   policy.Goal       `json:"goal"`
	NumThreads             int               `json:"num_threads"`
	Concurrency            int               `json:"concurrency"`
	BatchSize              int               `json:"batch_size"`               // 0: left as it is
	RefreshIntervalSeconds float64           `json:"refresh_interval_seconds"` // 0: left as it is
	Compression            string            `json:"compression"`
	CompressionLevel       *int              `json:"compression_level"` // null: the codec's default
	Checksum               bool              `json:"checksum"`
	RateMBPerS             float64           `json:"rate_mb_per_s"`
	DurationSeconds        float64           `json:"duration_seconds"`
	HostCPURatio           float64           `json:"host_cpu_ratio"`
	GCHoldSeconds          float64           `json:"gc_hold_seconds"`
	ControlLagSeconds      float64           `json:"control_lag_seconds"`
	QPSDropRatio           policy.Range      `json:"qps_drop_ratio"`
	P95RiseRatio           policy.Range      `json:"p95_rise_ratio"`
	BRArgs                 []string          `json:"br_args"`
	SQL                    []string          `json:"sql"`
	Reasons                []policy.Reason   `json:"reasons"`
	Warnings               []string          `json:"warnings"`
	Alternatives           []AlternativeView `json:"alternatives"`
}

// AlternativeView is a plan that was considered and not taken.
type AlternativeView struct {
	NumThreads        int          `json:"num_threads"`
	Concurrency       int          `json:"concurrency"`
	Compression       string       `json:"compression"`
	RateMBPerS        float64      `json:"rate_mb_per_s"`
	DurationSeconds   float64      `json:"duration_seconds"`
	HostCPURatio      float64      `json:"host_cpu_ratio"`
	GCHoldSeconds     float64      `json:"gc_hold_seconds"`
	ControlLagSeconds float64      `json:"control_lag_seconds"`
	QPSDropRatio      policy.Range `json:"qps_drop_ratio"`
	P95RiseRatio      policy.Range `json:"p95_rise_ratio"`
	Why               string       `json:"why"`
}

func planView(p policy.Plan) PlanView {
	f := p.Forecast
	return PlanView{
		Tier: p.Tier, Mode: p.Mode, Goal: p.Goal,
		NumThreads: p.NumThreads, Concurrency: p.Concurrency,
		BatchSize: p.BatchSize, RefreshIntervalSeconds: p.RefreshInterval.Seconds(),
		Compression: p.Compression, CompressionLevel: p.CompressionLevel, Checksum: p.Checksum,
		RateMBPerS: f.RateMBPerS, DurationSeconds: f.Duration.Seconds(), HostCPURatio: f.HostCPURatio,
		GCHoldSeconds: f.GCHold.Seconds(), ControlLagSeconds: f.ControlLag.Seconds(),
		QPSDropRatio: f.QPSDrop, P95RiseRatio: f.P95Rise,
		BRArgs: []string{}, SQL: []string{},
		Reasons: orEmpty(p.Reasons), Warnings: orEmpty(p.Warnings), Alternatives: alternativeViews(p.Alternatives),
	}
}

func alternativeViews(alternatives []policy.Alternative) []AlternativeView {
	out := make([]AlternativeView, len(alternatives))
	for i, a := range alternatives {
		f := a.Forecast
		out[i] = AlternativeView{
			NumThreads: a.NumThreads, Concurrency: a.Concurrency, Compression: a.Compression,
			RateMBPerS: f.RateMBPerS, DurationSeconds: f.Duration.Seconds(), HostCPURatio: f.HostCPURatio,
			GCHoldSeconds: f.GCHold.Seconds(), ControlLagSeconds: f.ControlLag.Seconds(),
			QPSDropRatio: f.QPSDrop, P95RiseRatio: f.P95Rise, Why: a.Why,
		}
	}
	return out
}

// orEmpty makes lists print as [] and never as null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
