package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/brctl/brctl/internal/app"
	"github.com/brctl/brctl/pkg/policy"
)

func TestTheExitCodeSaysHowARunEnded(t *testing.T) {
	pending := []app.SettingView{{Instance: "h1:20160", Restored: app.RestorePending}}
	back := []app.SettingView{{Instance: "h1:20160", Restored: app.Restored}, {Instance: "h2:20160", Restored: app.RestoreUntouched}}
	for _, tc := range []struct {
		status   policy.RunStatus
		reason   policy.RunReason
		settings []app.SettingView
		want     int
	}{
		{status: policy.RunSucceeded, want: 0},
		{status: policy.RunSucceeded, settings: back, want: 0},
		{status: policy.RunSucceeded, settings: append(back, pending...), want: 5},
		{status: policy.RunFailed, reason: policy.ReasonEngine, want: 1},
		{status: policy.RunFailed, reason: policy.ReasonEngine, settings: pending, want: 1},
		{status: policy.RunFailed, reason: policy.ReasonUnavailable, want: 69},
		{status: policy.RunFailed, reason: policy.ReasonPrivilege, want: 77},
		{status: policy.RunInterrupted, reason: policy.ReasonDied, want: 1},
		{status: policy.RunAborted, reason: policy.ReasonCPU, want: 3},
		{status: policy.RunCancelled, reason: policy.ReasonOperator, want: 4},
		{status: policy.RunCancelled, reason: policy.ReasonOperator, settings: pending, want: 4},
		{status: policy.RunSkipped, reason: policy.ReasonOverlap, want: 75},
		{status: policy.RunMissed, reason: policy.ReasonDeadline, want: 75},
	} {
		got := runCode(app.Result{Status: tc.status, Reason: tc.reason, Settings: tc.settings})
		if got != tc.want {
			t.Errorf("%s (%s), %d settings: exit code %d, want %d", tc.status, tc.reason, len(tc.settings), got, tc.want)
		}
	}
}

func TestTheExitCodeSaysWhatSortOfTroubleItWas(t *testing.T) {
	for _, tc := range []struct {
		err       error
		want      int
		wantPrint string
	}{
		{&app.Error{Kind: app.KindConfig, Err: errors.New("clusters: is missing")}, 78, "brctl: clusters: is missing\n"},
		{&app.Error{Kind: app.KindNotFound, Err: errors.New("no schedule"), Hint: "nightly"}, 66, "brctl: no schedule\nhint: nightly\n"},
		{&app.Error{Kind: app.KindUnavailable, Err: errors.New("ask PD")}, 69, "brctl: ask PD\n"},
		{&app.Error{Kind: app.KindDeferred, Err: errors.New("held")}, 75, "brctl: held\n"},
		{&app.Error{Kind: app.KindPermission, Err: errors.New("no grant")}, 77, "brctl: no grant\n"},
		{&app.Error{Kind: app.KindFailed, Err: errors.New("disk full")}, 1, "brctl: disk full\n"},
		{errors.New("plain"), 1, "brctl: plain\n"},
		{fmt.Errorf("wrapped: %w", &app.Error{Kind: app.KindNotFound, Err: errors.New("no run")}), 66, "brctl: wrapped: no run\n"},
		{
			&app.Error{Kind: app.KindConfig, Err: errors.Join(errors.New("one"), errors.New("two")), Hint: "edit"}, 78,
			"brctl: one\n  two\nhint: edit\n",
		},
	} {
		var b strings.Builder
		if got := explain(&b, tc.err); got != tc.want {
			t.Errorf("%v: exit code %d, want %d", tc.err, got, tc.want)
		}
		if b.String() != tc.wantPrint {
			t.Errorf("%v: printed %q, want %q", tc.err, b.String(), tc.wantPrint)
		}
	}
}

func TestMistakesInTheArgumentsAreToldFromThoseInWhatTheyName(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{usageError{"--output: got xml"}, true},
		{fmt.Errorf("plan: %w", usageError{"--size"}), true},
		{&app.Error{Kind: app.KindUsage, Err: errors.New("hosts: outside 1..10000")}, true},
		{&app.Error{Kind: app.KindConfig, Err: errors.New("clusters: is missing")}, false},
		{errors.New("disk full"), false},
	} {
		if got := isUsage(tc.err); got != tc.want {
			t.Errorf("%v: usage %v, want %v", tc.err, got, tc.want)
		}
	}
}

// The help that operators read and the codes that systemd sees are one table.
func TestTheHelpNamesEveryExitCode(t *testing.T) {
	for _, code := range []int{
		exitOK, exitFailed, exitAborted, exitCancelled, exitWarnings, exitUsage,
		exitNoInput, exitUnavailable, exitDeferred, exitNoPerm, exitConfig,
	} {
		if line := fmt.Sprintf("\n%4d  ", code); !strings.Contains(exitHelp, line) {
			t.Errorf("exit code %d is not explained", code)
		}
	}
}
