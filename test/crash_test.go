//go:build system

package test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// crashPoints are all named places, in the order of a run on four instances.
func crashPoints() []string {
	points := []string{"before_journal", "after_journal"}
	for i := range 4 {
		points = append(points, fmt.Sprintf("set:%d", i+1))
	}
	points = append(points, "before_engine_start", "engine_started", "backup_ts_known", "before_restore")
	for i := range 4 {
		points = append(points, fmt.Sprintf("restore_set:%d", i+1))
	}
	return append(points, "after_restore_record", "before_record", "after_record")
}

// TestSettingsComeBackAfterAKillAtEveryPlace kills brctl at each place. Every
// other time nothing is repaired in between, so that the next run begins on
// what two dead ones left.
func TestSettingsComeBackAfterAKillAtEveryPlace(t *testing.T) {
	l := smallLab(t)
	old := l.setDifferent(t)
	for i, point := range crashPoints() {
		c := start(t, brctlCrashes, []string{"BRCTL_CRASH_AT=" + point}, "run-now", "-c", l.config, "nightly")
		if code := c.wait(t, runLimit); code != -1 {
			t.Fatalf("%s: exit code %d, want death by SIGKILL\n%s", point, code, c.err.String())
		}
		l.noBR(t) // br saw its terminal hang up
		if i%2 == 1 {
			continue
		}
		run(t, 0, "settings", "restore", "--state-dir", l.stateDir())
		if got := l.values(t, numThreads); !equal(got, old) {
			t.Fatalf("after a kill at %s and settings restore: %v, want %v", point, got, old)
		}
		l.nothingPending(t)
	}
	l.finalRun(t, old)
}

// finalRun shows that nothing of the dead runs is in the way of a whole one.
func (l *lab) finalRun(t *testing.T, old map[string]string) {
	t.Helper()
	began := time.Now()
	r := run(t, 0, "run-now", "-c", l.config, "nightly", "-o", "json").result(t)
	if r.Status != "succeeded" {
		t.Errorf("the run after the kills: %s (%s)", r.Status, r.Message)
	}
	l.checkRestored(t, began, old)
	l.nothingPending(t)
}

// checkRestored checks the values now, and that nothing but an old value was
// the last that any instance saw.
func (l *lab) checkRestored(t *testing.T, since time.Time, old map[string]string) {
	t.Helper()
	last := map[string]string{}
	for _, e := range l.events(t, since) {
		if e.Kind == "config_change" && e.Item == numThreads {
			last[e.Instance] = fmt.Sprint(e.Value)
		}
	}
	for instance, value := range last {
		if value != old[instance] {
			t.Errorf("%s was last set to %s, want its old %s", instance, value, old[instance])
		}
	}
	if got := l.values(t, numThreads); !equal(got, old) {
		t.Errorf("settings afterwards: %v, want %v", got, old)
	}
}

// TestSettingsComeBackAfterKillsAtRandomTimes kills without regard to places.
// The seed is fixed: a failure can be repeated, as far as time can.
func TestSettingsComeBackAfterKillsAtRandomTimes(t *testing.T) {
	const kills = 10
	l := smallLab(t)
	old := l.setDifferent(t)
	rnd := rand.New(rand.NewPCG(20261130, 1))
	otherHost := l.withConfig(t, "other-host.yaml", l.stateDir(), filepath.Join(l.dir, "state-other"))
	for i := range kills {
		after := time.Duration(rnd.IntN(15000)) * time.Millisecond
		began := time.Now()
		c := start(t, brctl, nil, "run-now", "-c", l.config, "nightly")
		if i == kills/2 {
			l.underway(t, c, began)
			other := run(t, 75, "run-now", "-c", otherHost, "nightly", "-o", "json").result(t)
			if other.Reason != "overlap" {
				t.Errorf("the other host got %s (%s), want overlap", other.Status, other.Reason)
			}
		}
		select {
		case <-c.done: // a short run may be over before
		case <-time.After(after):
			c.signal(t, syscall.SIGKILL)
		}
		c.wait(t, time.Minute)
		l.noBR(t)
		if i%2 == 0 {
			run(t, 0, "settings", "restore", "--state-dir", l.stateDir())
			l.checkRestored(t, began, old)
			l.nothingPending(t)
		}
	}
	l.finalRun(t, old)
}

// TestAllSettingsOfImpactControlComeBack: under control a run changes three
// settings of each TiKV. It is killed in the middle of them, then let through.
func TestAllSettingsOfImpactControlComeBack(t *testing.T) {
	items := []string{numThreads, "backup.batch-size", "backup.auto-tune-refresh-interval"}
	l := smallLab(t)
	l.setDifferent(t)
	l.ctl(t, "sql", fmt.Sprintf("SET CONFIG '%s' `backup.batch-size` = 4", l.Stores[0].Address))
	before := map[string]map[string]string{}
	for _, item := range items {
		before[item] = l.values(t, item)
	}
	check := func(when string) {
		t.Helper()
		for _, item := range items {
			if got := l.values(t, item); !equal(got, before[item]) {
				t.Errorf("%s: %s is %v, want %v", when, item, got, before[item])
			}
		}
		l.nothingPending(t)
	}
	config := l.withConfig(t, "control.yaml", "timezone: UTC", `timezone: UTC, control: "on"`)
	c := start(t, brctlCrashes, []string{"BRCTL_CRASH_AT=set:6"}, "run-now", "-c", config, "nightly")
	if code := c.wait(t, runLimit); code != -1 {
		t.Fatalf("exit code %d, want death by SIGKILL\n%s", code, c.stderr())
	}
	run(t, 0, "settings", "restore", "--state-dir", l.stateDir())
	check("after a kill amid the settings")

	began := time.Now()
	r := run(t, 0, "run-now", "-c", config, "nightly", "-o", "json").result(t)
	check("after a whole run")
	seen := map[string]int{}
	for _, e := range l.events(t, began) {
		if e.Kind == "config_change" {
			seen[e.Item]++
		}
	}
	for _, item := range items { // there and back on four instances
		if seen[item] != 8 {
			t.Errorf("the stand-ins saw %d changes of %s, want 8", seen[item], item)
		}
	}
	if len(r.Settings) != 12 {
		t.Errorf("%d settings in the result, want 12", len(r.Settings))
	}
}

// TestSettingsAreNotRestoredUnderALivingBR uses a stub of br that answers
// --version through the real one and then clings to life: it ignores the
// hang-up and TERM.
func TestSettingsAreNotRestoredUnderALivingBR(t *testing.T) {
	l := smallLab(t)
	old := l.setDifferent(t)
	stub := filepath.Join(l.dir, "br-that-lives")
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --version ] && exec %q --version\ntrap '' HUP TERM\nwhile :; do sleep 1; done # %s\n", l.BR, l.dir)
	if err := os.WriteFile(stub, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	config := l.withConfig(t, "stub.yaml", l.BR, stub)
	began := time.Now()
	c := start(t, brctl, nil, "run-now", "-c", config, "nightly")
	waitFor(t, time.Minute, "the stub to run", func() bool { return len(l.brPIDs(t)) > 0 })
	c.signal(t, syscall.SIGKILL)
	c.wait(t, time.Minute)
	pids := l.brPIDs(t)
	if len(pids) != 1 {
		t.Fatalf("processes of the stub: %v, want one", pids)
	}

	refused := run(t, 75, "settings", "restore", "--state-dir", l.stateDir())
	if want := fmt.Sprintf("pid %d", pids[0]); !strings.Contains(refused.stderr(), want) {
		t.Errorf("the refusal does not name %s: %s", want, refused.stderr())
	}
	if got := l.values(t, numThreads); equal(got, old) {
		t.Error("settings were put back under a living br")
	}
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	run(t, 0, "settings", "restore", "--state-dir", l.stateDir())
	l.checkRestored(t, began, old)
}
