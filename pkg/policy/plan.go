package policy

import "time"

// Mode says how a plan is made.
type Mode string

// The planning modes.
const (
	ModeTiered   Mode = "tiered"   // the measured tiers by cluster size
	ModeOptimize Mode = "optimize" // the best point that meets the limits
)

// Goal says what the optimizer prefers among the plans that meet the limits.
type Goal string

// The goals.
const (
	GoalImpact   Goal = "impact"
	GoalSpeed    Goal = "speed"
	GoalSpace    Goal = "space"
	GoalBalanced Goal = "balanced"
)

// Medium is what the backup is written to; it decides which measured impact
// range applies.
type Medium string

// The media. S3 is treated as NAS.
const (
	MediumNAS  Medium = "nas"
	MediumS3   Medium = "s3"
	MediumNVMe Medium = "nvme"
)

// Limits are ceilings that a plan must keep. Zero means "no limit".
type Limits struct {
	MaxHostCPU    float64       `json:"max_host_cpu,omitempty"` // share of a host, base load included, 0..1
	MaxDuration   time.Duration `json:"max_duration,omitempty"`
	MaxGCHold     time.Duration `json:"max_gc_hold,omitempty"`
	MaxQPSDrop    float64       `json:"max_qps_drop,omitempty"` // ratio 0..1, against the high end of the range
	MaxP95Rise    float64       `json:"max_p95_rise,omitempty"` // ratio, against the high end of the range
	StorageMBPerS float64       `json:"storage_mb_per_s,omitempty"`
	NetworkMBPerS float64       `json:"network_mb_per_s,omitempty"` // per host
}

// Options are what a user asked of a plan: how to choose, and the values that
// were chosen for it. A nil pointer means "planner's choice".
type Options struct {
	Mode   Mode
	Goal   Goal
	Limits Limits
	// Control says that impact control is wanted: batch-size and
	// auto-tune-refresh-interval become part of the plan, and C is kept small
	// so that a cut of threads bites soon.
	Control      bool
	AllowUnusual bool // permits T > 8 and C outside 4..256

	NumThreads       *int
	Concurrency      *int
	BatchSize        *int
	RefreshInterval  *time.Duration
	Compression      *string
	CompressionLevel *int
	Checksum         *bool
	RateLimitMBPerS  *int // br --ratelimit; warned about
	ReplicaReadLabel string

	Medium        Medium
	BaseLoad      *float64 // share of a host that business uses, 0..1; overrides what was measured
	RatePerThread float64  // k, MB/s per thread; 0 = the prior
	RateSource    string   // where RatePerThread comes from: "configured", "learned from 12 runs"
}

// PlanInput is everything that a plan depends on.
type PlanInput struct {
	Cluster   Cluster
	BRVersion string // "" when unknown: then the cluster's version is assumed
	Options   Options
}

// Range is an estimate with its two ends and where it comes from.
type Range struct {
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Source string  `json:"source"`
}

// Reason explains one value of a plan.
type Reason struct {
	Item string `json:"item"` // "num_threads", "concurrency", …
	Text string `json:"text"`
}

// Forecast is what a plan is expected to do.
type Forecast struct {
	RateMBPerS   float64       `json:"rate_mb_per_s"`
	Duration     time.Duration `json:"duration"`
	HostCPURatio float64       `json:"host_cpu_ratio"` // of the worst host, backup workers only
	WorstHost    string        `json:"worst_host,omitempty"`
	GCHold       time.Duration `json:"gc_hold"`
	ControlLag   time.Duration `json:"control_lag"` // until a cut of threads is applied, when the queue is long
	QPSDrop      Range         `json:"qps_drop"`
	P95Rise      Range         `json:"p95_rise"`
	SlowestStore string        `json:"slowest_store,omitempty"`
}

// Plan is the policy's decision for one run.
type Plan struct {
	Tier             string        `json:"tier"` // small, medium, large
	Mode             Mode          `json:"mode"`
	Goal             Goal          `json:"goal,omitempty"`
	NumThreads       int           `json:"num_threads"` // the common T; Settings says what each instance gets
	Concurrency      int           `json:"concurrency"`
	BatchSize        int           `json:"batch_size"`       // 0: left alone
	RefreshInterval  time.Duration `json:"refresh_interval"` // 0: left alone
	Compression      string        `json:"compression"`
	CompressionLevel *int          `json:"compression_level,omitempty"` // nil: the codec's default, flag not sent
	Checksum         bool          `json:"checksum"`
	RateLimitMBPerS  int           `json:"ratelimit_mb_per_s,omitempty"`
	ReplicaReadLabel string        `json:"replica_read_label,omitempty"`

	Settings     []Setting     `json:"settings"` // per instance, in a stable order
	Forecast     Forecast      `json:"forecast"`
	Reasons      []Reason      `json:"reasons"`
	Warnings     []string      `json:"warnings"`
	Alternatives []Alternative `json:"alternatives"`
}

// Alternative is a plan that was considered and why it was not taken.
type Alternative struct {
	NumThreads  int      `json:"num_threads"`
	Concurrency int      `json:"concurrency"`
	Compression string   `json:"compression"`
	Forecast    Forecast `json:"forecast"`
	Why         string   `json:"why"`
}
