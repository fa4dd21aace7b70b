package state_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"

	"github.com/brctl/brctl/internal/state"
	"github.com/brctl/brctl/pkg/policy"
)

var began = time.Date(2026, 3, 1, 2, 0, 0, 123e6, time.UTC)

const cluster = uint64(math.MaxUint64)

// id returns a ULID that sorts by n.
func id(n int) string {
	var entropy [16]byte
	entropy[0] = byte(n)
	u := ulid.ULID{}
	must2(u.SetTime(ulid.Timestamp(began)), u.SetEntropy(entropy[:10]))
	return u.String()
}

func must2(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		panic(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func options() state.Options {
	return state.Options{Brctl: "v1.2.3", Now: func() time.Time { return began }}
}

func open(t *testing.T, dir string) *state.DB {
	t.Helper()
	db, err := state.Open(t.Context(), dir, options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // a test may have closed it
	return db
}

// fullRun has every field set, numbers at their limit.
func fullRun() state.Run {
	level := 3
	return state.Run{
		ID: id(1), ClusterID: cluster, ClusterName: "prod", Schedule: "nightly", Trigger: "manual",
		Status: policy.RunRunning, Step: "engine", Verdict: policy.RunFailed, Reason: policy.ReasonGC, Message: "it's \"quoted\" – ünïcode",
		Warnings: []string{"one", "it's \"two\""},
		Plan: &policy.Plan{Tier: "large", NumThreads: 4, Compression: "zstd", CompressionLevel: &level,
			RefreshInterval: 10 * time.Second, Forecast: policy.Forecast{RateMBPerS: 1440.5}},
		Invocation: &policy.Invocation{Engine: "br", Args: []string{"backup", "full"}, CredentialEnv: map[string]string{"A": "file:/x"}},
		StorageURL: "local:///b", BackupTS: policy.NoLimitTS, ServiceSafePoint: "br-x", SizeBytes: math.MaxUint64,
		Forecast: 90 * time.Minute, Duration: 91*time.Minute + 7*time.Millisecond,
		CreatedAt: began, StartedAt: began.Add(time.Second), EndedAt: began.Add(2 * time.Hour),
		Host: "db-1", PID: 4242, BootID: "b00t", Fence: math.MaxUint64 - 1,
	}
}

func queued(n int, schedule string, status policy.RunStatus) state.Run {
	return state.Run{ID: id(n), ClusterID: cluster, Schedule: schedule, Status: status, CreatedAt: began.Add(time.Duration(n) * time.Minute)}
}

func TestARunComesBackAsItWasCreated(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	want := fullRun()
	for i := range reflect.TypeFor[state.Run]().NumField() {
		if reflect.ValueOf(want).Field(i).IsZero() {
			t.Errorf("the test does not set %s", reflect.TypeFor[state.Run]().Field(i).Name)
		}
	}
	must(t, db.CreateRun(t.Context(), want))
	must(t, db.Close())
	got, err := open(t, dir).Run(t.Context(), want.ID)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
}

func TestAnUpdateChangesWhatItNamesAndNothingElse(t *testing.T) {
	db := open(t, t.TempDir())
	before := queued(1, "nightly", policy.RunQueued)
	must(t, db.CreateRun(t.Context(), before))
	full := fullRun()
	full.CreatedAt, full.ClusterName, full.Trigger = before.CreatedAt, "", ""
	update := reflect.ValueOf(&state.RunUpdate{}).Elem()
	for i := range update.NumField() { // one field at a time, then all are as in full
		name := update.Type().Field(i).Name
		value := reflect.ValueOf(full).FieldByName(name)
		one := reflect.New(update.Type()).Elem()
		if value.Kind() != reflect.Pointer {
			p := reflect.New(value.Type())
			p.Elem().Set(value)
			value = p
		}
		one.Field(i).Set(value)
		must(t, db.UpdateRun(t.Context(), before.ID, one.Interface().(state.RunUpdate)))

		want := reflect.ValueOf(&before).Elem()
		want.FieldByName(name).Set(reflect.ValueOf(full).FieldByName(name))
		got, err := db.Run(t.Context(), before.ID)
		must(t, err)
		if diff := cmp.Diff(before, got); diff != "" {
			t.Fatalf("after %s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(full, before); diff != "" {
		t.Errorf("what no update reaches (-full +updated):\n%s", diff)
	}
}

func TestAnUpdateAndItsEventsAreOne(t *testing.T) {
	db := open(t, t.TempDir())
	run := queued(1, "nightly", policy.RunQueued)
	must(t, db.CreateRun(t.Context(), run))
	running := policy.RunRunning
	must(t, db.UpdateRun(t.Context(), run.ID, state.RunUpdate{Status: &running},
		policy.Event{At: began, Kind: "engine_start", Message: "starting br"},
		policy.Event{At: began, Kind: "other", Message: "more"}))

	broken := policy.Event{Kind: "broken", Data: map[string]any{"x": func() {}}}
	failed := policy.RunFailed
	if err := db.UpdateRun(t.Context(), run.ID, state.RunUpdate{Status: &failed}, broken); err == nil {
		t.Error("an event that cannot be kept was kept")
	}
	got, err := db.Run(t.Context(), run.ID)
	must(t, err)
	events, err := db.Events(t.Context(), run.ID, 0)
	must(t, err)
	if got.Status != running || len(events) != 2 {
		t.Errorf("status %s and %d events, want running and 2", got.Status, len(events))
	}
	if err := db.UpdateRun(t.Context(), id(9), state.RunUpdate{}); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("update of no run: %v, want ErrNotFound", err)
	}
}

func TestEventsAreNumberedAndKeepEveryDigit(t *testing.T) {
	db := open(t, t.TempDir())
	must(t, db.CreateRun(t.Context(), queued(1, "nightly", policy.RunQueued)))
	must(t, db.CreateRun(t.Context(), queued(2, "nightly", policy.RunQueued)))
	ts := policy.Event{At: began, Kind: "backup_ts", Message: "known", Data: map[string]any{"ts": uint64(math.MaxUint64)}}
	for range 3 {
		if _, err := db.AppendEvent(t.Context(), id(2), policy.Event{At: began, Kind: "other"}); err != nil {
			t.Fatal(err)
		}
	}
	for want := range int64(2) {
		seq, err := db.AppendEvent(t.Context(), id(1), ts)
		if err != nil || seq != want+1 {
			t.Fatalf("seq %d, %v, want %d", seq, err, want+1)
		}
	}
	got, err := db.Events(t.Context(), id(1), 1)
	must(t, err)
	ts.Data = map[string]any{"ts": json.Number("18446744073709551615")}
	if diff := cmp.Diff([]state.Event{{Seq: 2, Event: ts}}, got); diff != "" {
		t.Errorf("events after 1 (-want +got):\n%s", diff)
	}
	if _, err := db.AppendEvent(t.Context(), id(9), ts); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("event of no run: %v, want ErrNotFound", err)
	}
}

func TestAnAttemptIsRecordedBeforeItStartsAndEndsOnce(t *testing.T) {
	db := open(t, t.TempDir())
	must(t, db.CreateRun(t.Context(), queued(1, "nightly", policy.RunRunning)))
	child := policy.ChildRef{PID: 7, StartTicks: math.MaxUint64, BootID: "b"}
	outcome := policy.Outcome{Class: policy.OutcomeTransient, ExitCode: -1, BackupTS: policy.NoLimitTS, RetryAfter: time.Minute}
	for want := range 2 {
		n, err := db.StartAttempt(t.Context(), id(1), began)
		if err != nil || n != want+1 {
			t.Fatalf("attempt %d, %v, want %d", n, err, want+1)
		}
	}
	must(t, db.AttemptChild(t.Context(), id(1), 1, child))
	must(t, db.EndAttempt(t.Context(), id(1), 1, began.Add(time.Hour), outcome))

	got, err := db.Attempts(t.Context(), id(1))
	must(t, err)
	want := []state.Attempt{
		{N: 1, StartedAt: began, EndedAt: began.Add(time.Hour), Child: &child, Outcome: &outcome},
		{N: 2, StartedAt: began},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	for name, err := range map[string]error{
		"end twice":         db.EndAttempt(t.Context(), id(1), 1, began, outcome),
		"child after end":   db.AttemptChild(t.Context(), id(1), 1, child),
		"end of no attempt": db.EndAttempt(t.Context(), id(1), 3, began, outcome),
		"start of no run":   second(db.StartAttempt(t.Context(), id(9), began)),
	} {
		if !errors.Is(err, state.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestSettingsOfARunAreReplacedByKey(t *testing.T) {
	db := open(t, t.TempDir())
	must(t, db.CreateRun(t.Context(), queued(1, "nightly", policy.RunRunning)))
	setting := func(instance, restored string, store uint64) state.Setting {
		return state.Setting{SettingKey: policy.SettingKey{Instance: instance, Name: policy.ItemNumThreads},
			StoreID: store, Old: "8", Set: "4", Restored: restored}
	}
	must(t, db.SaveSettings(t.Context(), id(1), []state.Setting{setting("b:1", "", math.MaxUint64), setting("a:1", "", 1)}))
	must(t, db.SaveSettings(t.Context(), id(1), []state.Setting{setting("b:1", "restored", math.MaxUint64)}))
	got, err := db.Settings(t.Context(), id(1))
	must(t, err)
	want := []state.Setting{setting("a:1", "", 1), setting("b:1", "restored", math.MaxUint64)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if err := db.SaveSettings(t.Context(), id(9), want); err == nil {
		t.Error("settings of no run were saved")
	}
}

func TestRunsAreFoundByWhatIsAskedFor(t *testing.T) {
	db := open(t, t.TempDir())
	other := queued(5, "nightly", policy.RunRunning)
	other.ClusterID = 1
	sameMoment := queued(6, "weekly", policy.RunInterrupted)
	sameMoment.CreatedAt = began.Add(4 * time.Minute)
	for _, r := range []state.Run{
		queued(1, "nightly", policy.RunSucceeded), queued(2, "nightly", policy.RunFailed),
		queued(3, "weekly", policy.RunPaused), queued(4, "nightly", policy.RunQueued), other, sameMoment,
	} {
		must(t, db.CreateRun(t.Context(), r))
	}
	list := func(f state.Filter) []state.Run {
		runs, err := db.Runs(t.Context(), f)
		must(t, err)
		return runs
	}
	unfinished, err := db.UnfinishedRuns(t.Context(), cluster)
	must(t, err)
	last, err := db.LastRuns(t.Context(), cluster)
	must(t, err)
	lastGood, err := db.LastRuns(t.Context(), cluster, policy.RunSucceeded, policy.RunFailed)
	must(t, err)
	none, err := db.UnfinishedRuns(t.Context(), 77)
	must(t, err)

	tests := map[string]struct {
		got  []state.Run
		want string
	}{
		"all, newest first":         {list(state.Filter{}), "5 6 4 3 2 1"},
		"of a cluster":              {list(state.Filter{ClusterID: cluster}), "6 4 3 2 1"},
		"of a schedule":             {list(state.Filter{ClusterID: cluster, Schedule: "nightly"}), "4 2 1"},
		"with statuses":             {list(state.Filter{Statuses: []policy.RunStatus{policy.RunFailed, policy.RunPaused}}), "3 2"},
		"limited":                   {list(state.Filter{Limit: 2}), "5 6"},
		"since, inclusive":          {list(state.Filter{Since: began.Add(4 * time.Minute)}), "5 6 4"},
		"before, exclusive":         {list(state.Filter{Before: began.Add(3 * time.Minute)}), "2 1"},
		"unfinished, oldest first":  {unfinished, "3 4"},
		"last of each schedule":     {last, "4 6"},
		"last ended, each schedule": {lastGood, "2"},
		"nothing":                   {none, ""},
	}
	for name, tt := range tests {
		if got := numbers(tt.got); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		if tt.got == nil {
			t.Errorf("%s: nil, want an empty list", name)
		}
	}
}

// numbers names runs by the n of their id.
func numbers(runs []state.Run) string {
	var out []string
	for _, r := range runs {
		for n := range 10 {
			if r.ID == id(n) {
				out = append(out, string(rune('0'+n)))
			}
		}
	}
	return strings.Join(out, " ")
}

func TestARunIsUnfinishedUntilItsStatusIsFinal(t *testing.T) {
	db := open(t, t.TempDir())
	must(t, db.CreateRun(t.Context(), queued(1, "nightly", policy.RunQueued)))
	for _, status := range []policy.RunStatus{
		policy.RunQueued, policy.RunWaiting, policy.RunPreflight, policy.RunRunning, policy.RunThrottled,
		policy.RunPaused, policy.RunVerifying, policy.RunSucceeded, policy.RunFailed, policy.RunAborted,
		policy.RunCancelled, policy.RunSkipped, policy.RunMissed, policy.RunInterrupted, policy.RunRunning,
	} {
		must(t, db.UpdateRun(t.Context(), id(1), state.RunUpdate{Status: &status}))
		runs, err := db.UnfinishedRuns(t.Context(), cluster)
		must(t, err)
		if unfinished := len(runs) == 1; unfinished == status.Final() {
			t.Errorf("%s: unfinished %v, final %v", status, unfinished, status.Final())
		}
	}
}

func TestARunWithoutAnOrderIsRefused(t *testing.T) {
	db := open(t, t.TempDir())
	bad := queued(1, "nightly", policy.RunQueued)
	bad.ID = "run-1"
	timeless := queued(2, "nightly", policy.RunQueued)
	timeless.CreatedAt = time.Time{}
	must(t, db.CreateRun(t.Context(), queued(3, "nightly", policy.RunQueued)))
	for name, r := range map[string]state.Run{"no ULID": bad, "no time": timeless, "taken": queued(3, "nightly", policy.RunQueued)} {
		if err := db.CreateRun(t.Context(), r); err == nil {
			t.Errorf("%s: created", name)
		}
	}
	if _, err := db.Run(t.Context(), id(2)); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("read of no run: %v, want ErrNotFound", err)
	}
}
