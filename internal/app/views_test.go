package app

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/engine/br"
	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/runner"
)

// asJSON returns v as a script would read it.
func asJSON(t *testing.T, v any) map[string]any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheResultOfARunThatDidNothingHasEmptyListsAndNoPlan(t *testing.T) {
	got := asJSON(t, resultOf(&runner.Run{ID: "run", Status: policy.RunSkipped, Reason: policy.ReasonOverlap}))
	for _, key := range []string{"settings", "warnings"} {
		if list, ok := got[key].([]any); !ok || len(list) != 0 {
			t.Errorf("%s is %v, want []", key, got[key])
		}
	}
	engine, ok := got["br"].(map[string]any)
	if !ok {
		t.Fatalf("br is %v", got["br"])
	}
	if argv, ok := engine["argv"].([]any); !ok || len(argv) != 0 || engine["exit_code"] != float64(-1) {
		t.Errorf("br is %v, want an empty argv and exit code -1", engine)
	}
	if plan, ok := got["plan"]; !ok || plan != nil {
		t.Errorf("plan is %v, want null", plan)
	}
	for _, key := range []string{
		"run_id", "status", "reason", "storage_url", "backup_ts", "size_bytes", "started_at", "ended_at",
		"duration_seconds", "forecast_duration_seconds", "service_safe_point",
	} {
		if _, ok := got[key]; !ok {
			t.Errorf("%s is missing", key)
		}
	}
}

func TestTheResultOfARunSaysHowItWent(t *testing.T) {
	run := newRun()
	for _, step := range life() {
		step(run)
	}
	run.Status = policy.RunSucceeded
	got := resultOf(run)
	if got.Plan == nil || !slices.Equal(got.Plan.BRArgs, run.Invocation.Args) || got.Plan.NumThreads != 2 {
		t.Errorf("plan %+v", got.Plan)
	}
	if diff := cmp.Diff(BRView{Argv: []string{"/usr/bin/br", "backup", "full"}, ExitCode: 0, LogFile: "/log"}, got.BR); diff != "" {
		t.Error(diff)
	}
	if got.DurationSeconds != 10 || got.ForecastDurationSeconds != 3600 || got.SizeBytes != 1<<30 {
		t.Errorf("duration %g of %g, size %d", got.DurationSeconds, got.ForecastDurationSeconds, got.SizeBytes)
	}
	if got.ServiceSafePoint != "" {
		t.Errorf("a run that succeeded still names the safepoint %q, which br has removed", got.ServiceSafePoint)
	}
	left := got.Unrestored()
	if len(left) != 1 || left[0].Instance != "h2:20160" || left[0].Message != "no answer" {
		t.Errorf("unrestored %+v, want h2's setting", left)
	}
	run.Status = policy.RunFailed
	if got := resultOf(run); got.ServiceSafePoint != "br-id" {
		t.Errorf("a failed run names the safepoint %q, want br-id", got.ServiceSafePoint)
	}
}

func TestAResultSharesNothingThatARunGoesOnChanging(t *testing.T) {
	run := newRun()
	run.Warnings = append(make([]string, 0, 8), "one")
	got := resultOf(run)
	run.Warnings[0] = "changed"
	if got.Warnings[0] != "one" {
		t.Errorf("warnings %v", got.Warnings)
	}
}

func TestAPlanWithoutListsPrintsEmptyOnes(t *testing.T) {
	got := asJSON(t, planView(policy.Plan{}))
	for _, key := range []string{"br_args", "sql", "reasons", "warnings", "alternatives"} {
		if list, ok := got[key].([]any); !ok || len(list) != 0 {
			t.Errorf("%s is %v, want []", key, got[key])
		}
	}
}

// One unit for all: a duration of Go in the JSON would be in nanoseconds.
func TestAPlanIsPrintedInSecondsWhereverItSpeaksOfTime(t *testing.T) {
	f := policy.Forecast{Duration: time.Hour, GCHold: time.Minute, ControlLag: time.Second}
	view := planView(policy.Plan{Forecast: f, RefreshInterval: 10 * time.Second, Alternatives: []policy.Alternative{{Forecast: f}}})
	a := view.Alternatives[0]
	got := []float64{
		view.DurationSeconds, view.GCHoldSeconds, view.ControlLagSeconds, view.RefreshIntervalSeconds,
		a.DurationSeconds, a.GCHoldSeconds, a.ControlLagSeconds,
	}
	if diff := cmp.Diff([]float64{3600, 60, 1, 10, 3600, 60, 1}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAPlanReportsTheStatementsAndTheCommandThatWouldBeUsed(t *testing.T) {
	level := 3
	plan := policy.Plan{
		NumThreads: 2, Concurrency: 16, Compression: "zstd", CompressionLevel: &level,
		Settings: []policy.Setting{
			{SettingKey: policy.SettingKey{Instance: "h1:20160", Name: "backup.num-threads"}, Want: "2"},
			{SettingKey: policy.SettingKey{Instance: "h1:20160", Name: "backup.auto-tune-refresh-interval"}, Want: "10s"},
		},
	}
	spec := br.Spec{Plan: plan, PDEndpoints: []string{"http://pd:2379"}, StorageURL: "local:///b/run", LogDir: "/log", RunID: "run"}
	report, err := planReport(plan, spec, br.New(br.Config{Binary: "/usr/bin/br"}))
	if err != nil {
		t.Fatal(err)
	}
	wantSQL := []string{
		"SET CONFIG 'h1:20160' `backup.num-threads` = 2",
		"SET CONFIG 'h1:20160' `backup.auto-tune-refresh-interval` = '10s'",
	}
	if diff := cmp.Diff(wantSQL, report.SQL); diff != "" {
		t.Error(diff)
	}
	for _, part := range []string{"/usr/bin/br backup full", "--storage local:///b/run", "--compression-level 3", "--checksum=false"} {
		if !strings.Contains(report.Command, part) {
			t.Errorf("command %q lacks %q", report.Command, part)
		}
	}
	if want := "/usr/bin/br " + strings.Join(report.BRArgs, " "); report.Command != want {
		t.Errorf("command %q, arguments %q", report.Command, want)
	}
}

func TestAStatementThatCannotBeSafeIsNotReported(t *testing.T) {
	plan := policy.Plan{
		Compression: "lz4", Concurrency: 16,
		Settings: []policy.Setting{{SettingKey: policy.SettingKey{Instance: "h1' OR '1", Name: "backup.num-threads"}, Want: "2"}},
	}
	spec := br.Spec{Plan: plan, PDEndpoints: []string{"http://pd:2379"}, StorageURL: "local:///b", LogDir: "/log", RunID: "run"}
	if report, err := planReport(plan, spec, br.New(br.Config{Binary: "br"})); err == nil {
		t.Errorf("reported %q", report.SQL)
	}
}

func TestValuesThatMakeNoSenseAreTheFaultOfWhoeverGaveThem(t *testing.T) {
	spec := policy.OfflineSpec{Bytes: 1 << 40, Hosts: 3, TiKVPerHost: 1, VCores: 16}
	for name, tc := range map[string]struct {
		spec   policy.OfflineSpec
		adjust func(*policy.Options)
		want   Kind
	}{
		"a cluster without hosts": {policy.OfflineSpec{Bytes: 1 << 40}, func(*policy.Options) {}, KindUsage},
		"an unknown goal":         {spec, func(o *policy.Options) { o.Goal = "fame" }, KindUsage},
		"a limit that is not met": {spec, func(o *policy.Options) { o.Limits.MaxDuration = time.Minute }, KindDeferred},
	} {
		_, err := PlanOffline(tc.spec, tc.adjust)
		var e *Error
		if !errors.As(err, &e) || e.Kind != tc.want {
			t.Errorf("%s: got %v, want kind %d", name, err, tc.want)
		}
	}
	var e *Error
	if err := planTrouble(&policy.InputError{}, KindConfig); !errors.As(err, &e) || e.Kind != KindConfig {
		t.Errorf("values of a schedule: got %v, want the configuration to blame", err)
	}
}
