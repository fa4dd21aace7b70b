package cli

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/app"
	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/runner"
)

var update = flag.Bool("update", false, "rewrite docs/cli.md and the expected outputs in testdata")

// golden compares got with a file, or rewrites the file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is stale; go test ./internal/cli -update accepts (-want +got):\n%s", path, diff)
	}
}

func resultOfSuccess() app.Result {
	setting := func(host string, old string, restored app.RestoreState) app.SettingView {
		return app.SettingView{Instance: host + ":20160", Name: "backup.num-threads", Old: old, Set: "2", Restored: restored}
	}
	return app.Result{
		RunID: "01JDZ8V0000000000000000000", Status: policy.RunSucceeded,
		StorageURL: "local:///mnt/backup/prod/nightly/20260102T030405Z-01JDZ8V0",
		BackupTS:   policy.TSFromTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), SizeBytes: 3 << 40,
		DurationSeconds: 24000, ForecastDurationSeconds: 24272.6,
		BR:       app.BRView{LogFile: "/var/lib/brctl/log/br/01JDZ8V0.br.log"},
		Settings: []app.SettingView{setting("10.0.1.31", "8", app.Restored), setting("10.0.1.32", "12", app.RestoreUntouched)},
	}
}

func TestAResultIsPrintedForPeople(t *testing.T) {
	failure := resultOfSuccess()
	failure.Status, failure.Reason = policy.RunFailed, policy.ReasonEngine
	failure.Message = "br (permanent, exit code 1): no space left on device"
	failure.BackupTS, failure.SizeBytes = 0, 0

	unrestored := resultOfSuccess()
	unrestored.Settings[0].Restored, unrestored.Settings[0].Message = app.RestorePending, "10.0.1.31:20160 does not answer"
	unrestored.Settings[1].Restored, unrestored.Settings[1].Message = runner.RestoreForeign, "it has 16, which is neither its old value 12 nor one of ours"
	unrestored.Warnings = []string{"1 setting is still changed: brctl settings restore"}

	early := app.Result{RunID: "01JDZ8V0000000000000000000", Status: policy.RunSkipped, Reason: policy.ReasonOverlap, Message: "run 01J on h9"}

	for name, r := range map[string]app.Result{"success": resultOfSuccess(), "failure": failure, "unrestored": unrestored, "skipped": early} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := printResult(&b, r); err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", "result_"+name+".txt"), b.String())
		})
	}
}

// On a thousand TiKVs nobody reads a thousand lines; but whatever is not put
// back is always among them.
func TestASettingThatIsNotRestoredIsPrintedHoweverManyThereAre(t *testing.T) {
	var settings []app.SettingView
	for i := range 200 {
		settings = append(settings, app.SettingView{Instance: fmt.Sprintf("h%03d:20160", i), Old: "8", Set: "2", Restored: app.Restored})
	}
	settings[190].Restored = app.RestorePending
	var b strings.Builder
	printSettings(&b, settings)
	text := b.String()
	if !strings.Contains(text, "h190:20160") || !strings.Contains(text, "NOT restored") {
		t.Errorf("the setting that is not restored is missing:\n%s", text)
	}
	if n := strings.Count(text, ":20160"); n != shownSettings+1 || !strings.Contains(text, "200 in all") {
		t.Errorf("%d settings printed:\n%s", n, text)
	}
}

func TestLongListsOfStatementsAreCutForPeople(t *testing.T) {
	statements := make([]string, shownSQL+3)
	for i := range statements {
		statements[i] = fmt.Sprintf("SET %d", i)
	}
	got := shorten(statements)
	if len(got) != shownSQL+1 || !strings.Contains(got[shownSQL], "3 more") {
		t.Errorf("got %q", got)
	}
	if statements[shownSQL] != fmt.Sprintf("SET %d", shownSQL) {
		t.Error("the list itself was changed")
	}
	if got := shorten(statements[:shownSQL]); len(got) != shownSQL {
		t.Errorf("a list that fits was cut: %q", got)
	}
}

func TestASettingStillChangedMakesRestoringFail(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		for state, want := range map[app.RestoreState]error{app.Restored: nil, app.RestorePending: codeError{exitFailed}} {
			var b strings.Builder
			err := printRestores(streams{out: &b}, format, []app.RestoredSetting{{Instance: "h1:20160", State: state}})
			if !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Errorf("%s, %s: got %v, want %v", format, state, err, want)
			}
			if !strings.Contains(b.String(), "h1:20160") {
				t.Errorf("%s, %s: printed %q", format, state, b.String())
			}
		}
	}
}
