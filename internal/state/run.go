package state

import (
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// Run is one backup run.
type Run struct {
	ID          string             `json:"id"` // ULID
	ClusterID   uint64             `json:"cluster_id"`
	ClusterName string             `json:"cluster_name"`
	Schedule    string             `json:"schedule"`
	Trigger     string             `json:"trigger"` // who asked for it: "manual", "schedule"
	Status      policy.RunStatus   `json:"status"`
	Step        string             `json:"step"`              // where the runner's state machine is
	Verdict     policy.RunStatus   `json:"verdict,omitempty"` // how it will end once all is put back; "" while open
	Reason      policy.RunReason   `json:"reason,omitempty"`
	Message     string             `json:"message,omitempty"`
	Warnings    []string           `json:"warnings,omitempty"`
	Plan        *policy.Plan       `json:"plan,omitempty"`       // nil until planned
	Invocation  *policy.Invocation `json:"invocation,omitempty"` // nil until frozen

	StorageURL       string        `json:"storage_url"`
	BackupTS         policy.TS     `json:"backup_ts"`          // 0 until known
	ServiceSafePoint string        `json:"service_safe_point"` // service id in PD
	SizeBytes        uint64        `json:"size_bytes"`
	Forecast         time.Duration `json:"forecast"` // to the millisecond
	Duration         time.Duration `json:"duration"` // to the millisecond

	CreatedAt time.Time `json:"created_at"` // UTC, to the millisecond, as all times here
	StartedAt time.Time `json:"started_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`

	// Who works on it.
	Host   string `json:"host"`
	PID    int    `json:"pid"`
	BootID string `json:"boot_id"`
	Fence  uint64 `json:"fence"` // of the cluster's lease; a smaller one must not write
}

func (r *Run) columns() []column {
	return []column{
		{"id", &r.ID},
		{"cluster_id", asDecimal(&r.ClusterID)},
		{"cluster_name", &r.ClusterName},
		{"schedule", &r.Schedule},
		{"triggered_by", &r.Trigger},
		{"status", &r.Status},
		{"step", &r.Step},
		{"verdict", &r.Verdict},
		{"reason", &r.Reason},
		{"message", &r.Message},
		{"warnings", lines{&r.Warnings}},
		{"plan", asJSON(&r.Plan)},
		{"invocation", asJSON(&r.Invocation)},
		{"storage_url", &r.StorageURL},
		{"backup_ts", asDecimal(&r.BackupTS)},
		{"service_safe_point", &r.ServiceSafePoint},
		{"size_bytes", asDecimal(&r.SizeBytes)},
		{"forecast_ms", span{&r.Forecast}},
		{"duration_ms", span{&r.Duration}},
		{"created_at", instant{&r.CreatedAt}},
		{"started_at", instant{&r.StartedAt}},
		{"ended_at", instant{&r.EndedAt}},
		{"host", &r.Host},
		{"pid", &r.PID},
		{"boot_id", &r.BootID},
		{"fence", asDecimal(&r.Fence)},
	}
}

// RunUpdate is what to change of a run; nil leaves a field as it is. What a run
// is created with (id, cluster, schedule, trigger, time) never changes.
type RunUpdate struct {
	Status     *policy.RunStatus
	Step       *string
	Verdict    *policy.RunStatus
	Reason     *policy.RunReason
	Message    *string
	Warnings   *[]string
	Plan       *policy.Plan
	Invocation *policy.Invocation

	StorageURL       *string
	BackupTS         *policy.TS
	ServiceSafePoint *string
	SizeBytes        *uint64
	Forecast         *time.Duration
	Duration         *time.Duration

	StartedAt *time.Time
	EndedAt   *time.Time

	Host   *string
	PID    *int
	BootID *string
	Fence  *uint64
}

// columns returns the columns that u changes.
func (u *RunUpdate) columns() []column {
	var out []column
	add := func(given bool, name string, field any) {
		if given {
			out = append(out, column{name, field})
		}
	}
	if u.Status != nil {
		add(true, "status", u.Status)
		add(true, "final", u.Status.Final())
	}
	add(u.Step != nil, "step", u.Step)
	add(u.Verdict != nil, "verdict", u.Verdict)
	add(u.Reason != nil, "reason", u.Reason)
	add(u.Message != nil, "message", u.Message)
	add(u.Warnings != nil, "warnings", lines{u.Warnings})
	add(u.Plan != nil, "plan", asJSON(&u.Plan))
	add(u.Invocation != nil, "invocation", asJSON(&u.Invocation))
	add(u.StorageURL != nil, "storage_url", u.StorageURL)
	add(u.BackupTS != nil, "backup_ts", asDecimal(u.BackupTS))
	add(u.ServiceSafePoint != nil, "service_safe_point", u.ServiceSafePoint)
	add(u.SizeBytes != nil, "size_bytes", asDecimal(u.SizeBytes))
	add(u.Forecast != nil, "forecast_ms", span{u.Forecast})
	add(u.Duration != nil, "duration_ms", span{u.Duration})
	add(u.StartedAt != nil, "started_at", instant{u.StartedAt})
	add(u.EndedAt != nil, "ended_at", instant{u.EndedAt})
	add(u.Host != nil, "host", u.Host)
	add(u.PID != nil, "pid", u.PID)
	add(u.BootID != nil, "boot_id", u.BootID)
	add(u.Fence != nil, "fence", asDecimal(u.Fence))
	return out
}
