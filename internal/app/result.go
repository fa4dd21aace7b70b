package app

import (
	"time"

	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/runner"
)

// Result is what run-now reports: the JSON is a stable interface.
type Result struct {
	RunID                   string           `json:"run_id"`
	Schedule                string           `json:"schedule"`
	Cluster                 string           `json:"cluster"`
	Status                  policy.RunStatus `json:"status"`
	Reason                  policy.RunReason `json:"reason"`
	Message                 string           `json:"message"`
	Plan                    *PlanView        `json:"plan"`        // null when the run ended before there was one
	StorageURL              string           `json:"storage_url"` // "" when br was never started
	BackupTS                policy.TS        `json:"backup_ts"`   // 0 when br never had one
	SizeBytes               uint64           `json:"size_bytes"`
	StartedAt               time.Time        `json:"started_at"`
	EndedAt                 time.Time        `json:"ended_at"`
	DurationSeconds         float64          `json:"duration_seconds"`          // of br
	ForecastDurationSeconds float64          `json:"forecast_duration_seconds"` // of br
	Settings                []SettingView    `json:"settings"`
	BR                      BRView           `json:"br"`
	ServiceSafePoint        string           `json:"service_safe_point"` // id that br left in PD, "" when it holds none
	Warnings                []string         `json:"warnings"`
}

// SettingView is one setting's way there and back.
type SettingView struct {
	Instance string              `json:"instance"`
	Name     string              `json:"name"`
	Old      string              `json:"old"`
	Set      string              `json:"set"`
	Restored runner.RestoreState `json:"restored"`
	Message  string              `json:"message,omitempty"`
}

// BRView is what was started and how it ended.
type BRView struct {
	Argv     []string `json:"argv"`
	ExitCode int      `json:"exit_code"` // -1: not started, or killed by a signal
	LogFile  string   `json:"log_file"`
}

func resultOf(run *runner.Run) Result {
	r := Result{
		RunID: run.ID, Schedule: run.Schedule, Cluster: run.ClusterName,
		Status: run.Status, Reason: run.Reason, Message: run.Message,
		StorageURL: run.StorageURL, BackupTS: run.BackupTS, SizeBytes: run.Size(),
		StartedAt: run.CreatedAt, EndedAt: run.EndedAt,
		DurationSeconds: run.Duration().Seconds(),
		Settings:        []SettingView{}, Warnings: append([]string{}, run.Warnings...),
		BR: BRView{Argv: []string{}, ExitCode: -1},
	}
	if run.EngineStartedAt.IsZero() {
		r.StorageURL = "" // br was never started: nothing is there
	}
	if run.Status != policy.RunSucceeded {
		r.ServiceSafePoint = run.ServiceSafePoint
	}
	if run.Plan != nil {
		view := planView(*run.Plan)
		r.Plan, r.ForecastDurationSeconds = &view, run.Plan.Forecast.Duration.Seconds()
	}
	if inv := run.Invocation; inv != nil {
		r.BR.Argv, r.BR.LogFile = append([]string{inv.Binary}, inv.Args...), inv.LogFile
		if r.Plan != nil {
			r.Plan.BRArgs = inv.Args
		}
	}
	if r.Plan != nil {
		sql, err := statements(run.Plan.Settings)
		if err != nil { // refused when it was sent, and said there
			r.Warnings = append(r.Warnings, err.Error())
		}
		r.Plan.SQL = orEmpty(sql)
	}
	if run.Outcome != nil {
		r.BR.ExitCode = run.Outcome.ExitCode
	}
	for _, c := range run.Settings {
		r.Settings = append(r.Settings, SettingView{
			Instance: c.Instance, Name: c.Name, Old: c.Old, Set: c.Set, Restored: c.Restored, Message: c.Message,
		})
	}
	return r
}

// Unrestored lists the settings that still have a value of ours.
func (r Result) Unrestored() []SettingView {
	var out []SettingView
	for _, s := range r.Settings {
		if s.Restored == runner.RestorePending {
			out = append(out, s)
		}
	}
	return out
}
