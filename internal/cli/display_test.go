package cli

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/app"
	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/runner"
)

func TestProgressSaysWhatIsKnownAndNothingElse(t *testing.T) {
	full := policy.Progress{Step: "Full Backup", Ratio: 0.421}
	for name, tc := range map[string]struct {
		status app.Status
		want   string
	}{
		"only a ratio": {app.Status{Progress: full}, "Full Backup 42.1 %"},
		"everything": {
			app.Status{
				Progress: full, Rate: 575.6, GCHold: 90 * time.Second, ETA: 3*time.Hour + 62*time.Second,
				Hosts: []app.HostStatus{{Host: "h1", Threads: 8, Known: true, CPUKnown: true, BackupCPU: 6, TotalCPU: 24, Cores: 48}},
			},
			"Full Backup 42.1 %, 576 MB/s, h1: 8 threads, CPU 50 % (backup 12 %), GC held 1m 30s, ETA 3h 01m 02s",
		},
		"a host without an answer": {
			app.Status{Progress: full, Hosts: []app.HostStatus{{Host: "h1"}}},
			"Full Backup 42.1 %, h1: ? threads",
		},
		"a host whose cores are unknown": {
			app.Status{Progress: full, Hosts: []app.HostStatus{{Host: "h1", Known: true, CPUKnown: true, BackupCPU: 1.5, TotalCPU: 3.25}}},
			"Full Backup 42.1 %, h1: 0 threads, 3.2 cores (backup 1.5)",
		},
		"nearly done": {app.Status{Progress: full, ETA: 59 * time.Second}, "Full Backup 42.1 %, ETA a minute or less"},
		"one minute":  {app.Status{Progress: full, ETA: time.Minute}, "Full Backup 42.1 %, ETA 1m 00s"},
	} {
		if got := progressText(tc.status); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// The bar and the lines agree on when there is an ETA: the runner gives none
// before 5 %.
func TestNoRemainingTimeIsShownWhereNoneIsKnown(t *testing.T) {
	s := app.Status{Progress: policy.Progress{Step: "Full Backup", Ratio: 0.049}, Rate: 5}
	for _, text := range []string{progressText(s), barText(s)} {
		if strings.Contains(text, "ETA") {
			t.Errorf("%q", text)
		}
	}
	s.ETA = 90 * time.Minute
	for _, text := range []string{progressText(s), barText(s)} {
		if !strings.Contains(text, "ETA 1h 30m 00s") {
			t.Errorf("%q", text)
		}
	}
}

// lines cuts the time of day off what a lineDisplay wrote.
func lines(t *testing.T, text string) []string {
	t.Helper()
	var out []string
	for line := range strings.Lines(text) {
		at, what, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if _, err := time.Parse("15:04:05", at); err != nil || !ok {
			t.Fatalf("line %q does not begin with a time", line)
		}
		out = append(out, what)
	}
	return out
}

func TestALogWithoutATerminalGetsEachThingOnceAndProgressNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		d := &lineDisplay{out: &b}
		at := func(step runner.Step, ratio float64, note string) {
			d.update(app.Status{Run: runner.Run{Step: step}, Progress: policy.Progress{Step: "Full Backup", Ratio: ratio}, Note: note})
		}
		at(runner.StepPlan, 0, "")
		at(runner.StepPlan, 0, "")
		at(runner.StepBackup, 0, "start attempt 1")
		at(runner.StepBackup, 0, "start attempt 1")
		for second := range 25 { // br's progress comes every second
			at(runner.StepBackup, 0.1+float64(second)/100, "")
			time.Sleep(time.Second)
		}
		d.warn("a store is silent")
		at(runner.StepRecord, 0, "")
		d.close()
		want := []string{
			runner.StepPlan.Doing(),
			runner.StepBackup.Doing(),
			"start attempt 1",
			"Full Backup 10.0 %", "Full Backup 20.0 %", "Full Backup 30.0 %",
			"warning: a store is silent",
		}
		if doing := runner.StepRecord.Doing(); doing != "" {
			want = append(want, doing)
		}
		if diff := cmp.Diff(want, lines(t, b.String())); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	})
}

func TestWithoutATerminalThereAreLines(t *testing.T) {
	if _, ok := newDisplay(streams{err: &strings.Builder{}}).(*lineDisplay); !ok {
		t.Error("a bar is drawn into a file")
	}
}

func TestHostsThatHaveNoLineAreSummedUp(t *testing.T) {
	hosts := make([]app.HostStatus, hostLines+3)
	for i := range hosts {
		hosts[i].Host = "h" + string(rune('a'+i))
	}
	if got, want := hostLine(hosts, hostLines-1), "  … and 4 more hosts"; got != want {
		t.Errorf("last line %q, want %q", got, want)
	}
	if got, want := hostLine(hosts[:hostLines], hostLines-1), "  hh: ? threads"; got != want {
		t.Errorf("last line where all fit: %q, want %q", got, want)
	}
	if got := hostLine(hosts[:2], 2); got != "" {
		t.Errorf("line of a host that has gone: %q", got)
	}
}

func TestSpansAreReadableAtEverySize(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                "0s",
		400 * time.Millisecond:           "0s",
		59*time.Second + 600*1e6:         "1m 00s",
		9*time.Minute + 6*time.Second:    "9m 06s",
		24272593 * time.Millisecond:      "6h 44m 33s",
		49*time.Hour + 5*time.Second:     "49h 00m 05s",
		time.Hour - time.Millisecond:     "1h 00m 00s",
		3*time.Hour + 59*time.Minute - 1: "3h 59m 00s",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	if got := seconds(24272.592); got != "6h 44m 33s" {
		t.Errorf("seconds: %q", got)
	}
}

func TestSharesAreReadAsPeopleTypeThem(t *testing.T) {
	for text, want := range map[string]float64{"65%": 0.65, "0.65": 0.65, "65": 0.65, "1": 1, "100%": 1, "0": 0} {
		if got, err := parseShare(text); err != nil || got != want {
			t.Errorf("%s: got %g, %v, want %g", text, got, err, want)
		}
	}
	for _, text := range []string{"", "%", "lots", "-5%", "-0.5", "NaN"} {
		if got, err := parseShare(text); err == nil {
			t.Errorf("%q was read as %g", text, got)
		}
	}
}
