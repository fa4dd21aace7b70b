//go:build system

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func (l *lab) storeID(i int) string { return fmt.Sprint(l.Stores[i].ID) }

// TestATiKVThatRefusesASettingFailsTheRunBeforeBR covers the ways in which one
// TiKV keeps a setting from being applied.
func TestATiKVThatRefusesASettingFailsTheRunBeforeBR(t *testing.T) {
	l := smallLab(t)
	for _, mode := range []string{"refuse", "hang"} {
		t.Run(mode, func(t *testing.T) {
			old := l.setDifferent(t)
			bad := l.Stores[1]
			l.ctl(t, "set-config", l.storeID(1), mode)
			began := time.Now()
			config := l.withConfig(t, mode+".yaml", "user: root", "user: root, statement_timeout: 3s")
			c := start(t, brctl, nil, "run-now", "-c", config, "nightly", "-o", "json")
			waitFor(t, time.Minute, "the restore to be tried", func() bool { return strings.Contains(c.stderr(), "put settings back") })
			l.ctl(t, "set-config", l.storeID(1), "ok") // a hung SET to our value arrives now
			if code := c.wait(t, runLimit); code != 1 {
				t.Fatalf("exit code %d, want 1\n%s", code, c.stderr())
			}
			r := c.result(t)
			if r.Status != "failed" || r.Reason != "settings" || !strings.Contains(r.Message, bad.Address) {
				t.Errorf("got %s (%s) %q, want failed (settings) with %s", r.Status, r.Reason, r.Message, bad.Address)
			}
			for _, e := range l.events(t, began) {
				if e.Kind == "backup_request" {
					t.Fatal("br was started all the same")
				}
			}
			l.checkRestored(t, began, old)
			l.nothingPending(t)
		})
	}
}

// TestASettingThatIsNotPersistedIsStillPutBack: the TiKV uses our value, which
// its file does not have.
func TestASettingThatIsNotPersistedIsStillPutBack(t *testing.T) {
	l := smallLab(t)
	old := l.setDifferent(t)
	l.ctl(t, "set-config", l.storeID(0), "not-persisted")
	began := time.Now()
	c := start(t, brctl, nil, "run-now", "-c", l.config, "nightly", "-o", "json")
	l.underway(t, c, began)
	l.ctl(t, "set-config", l.storeID(0), "ok")
	if code := c.wait(t, runLimit); code != 0 {
		t.Fatalf("exit code %d\n%s", code, c.err.String())
	}
	r := c.result(t)
	if !strings.Contains(strings.Join(r.Warnings, "\n"), l.Stores[0].Address) {
		t.Errorf("no warning names %s: %q", l.Stores[0].Address, r.Warnings)
	}
	l.checkRestored(t, began, old)
}

// TestATiKVThatRestartsIsSetAgain: it comes back with the value of its file, an
// older one, since ours was not persisted.
func TestATiKVThatRestartsIsSetAgain(t *testing.T) {
	l := startLab(t, "--hosts", "2", "--tikv-per-host", "2", "--cores", "16", "--size", "400GiB", "--tables", "20", "--rows", "50")
	old := l.setDifferent(t)
	l.ctl(t, "set-config", l.storeID(3), "not-persisted")
	began := time.Now()
	c := start(t, brctl, nil, "run-now", "-c", l.config, "nightly", "-o", "json")
	l.underway(t, c, began)
	l.ctl(t, "set-config", l.storeID(3), "ok")
	l.ctl(t, "restart-store", l.storeID(3))
	restarted := time.Now()
	address := l.Stores[3].Address
	waitFor(t, time.Minute, "the restarted TiKV to be set again", func() bool {
		for _, e := range l.events(t, restarted) {
			if e.Kind == "config_change" && e.Instance == address && e.Item == numThreads {
				return true
			}
		}
		return false
	})
	if code := c.wait(t, runLimit); code != 0 {
		t.Fatalf("exit code %d\n%s", code, c.err.String())
	}
	l.checkRestored(t, began, old)
}

// TestARunStopsBeforeAnythingChangesWhenSomethingIsMissing walks the preflight.
func TestARunStopsBeforeAnythingChangesWhenSomethingIsMissing(t *testing.T) {
	l := smallLab(t)
	old := l.setDifferent(t)
	blocked := filepath.Join(l.dir, "blocked")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.ctl(t, "sql", "CREATE USER 'poor'@'%'")
	for _, tc := range []struct {
		name    string
		replace []string
		code    int
		want    string
	}{
		{"no such br", []string{"/br\"", "/no-br\""}, 1, "no program"},
		{"no grant", []string{"user: root", "user: poor"}, 77, "CONFIG"},
		{"TiDB does not answer", []string{"user: root", "user: root, connect_timeout: 1s", "tidb: {endpoints: [\"127.0.0.1:", "tidb: {endpoints: [\"127.0.0.99:"}, 69, "connection refused"},
		{"PD does not answer", []string{"pd: {endpoints: [\"http://127.0.0.1:", "pd: {timeout: 2s, endpoints: [\"http://127.0.0.99:"}, 69, "ask PD"},
		{"target is not mounted", []string{"/backups\"", "/no-such-mount\""}, 1, "is it mounted"},
		{"target cannot be made", []string{"/backups\"", "/blocked\""}, 1, "blocked"},
		{"limits cannot be met", []string{"timezone: UTC", "timezone: UTC, mode: optimize, limits: {max_duration: 1s}"}, 75, "max_duration"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			began := time.Now()
			config := l.withConfig(t, "broken.yaml", tc.replace...)
			c := run(t, tc.code, "run-now", "-c", config, "nightly")
			if text := c.out.String() + c.err.String(); !strings.Contains(text, tc.want) {
				t.Errorf("nothing says %q:\n%s", tc.want, text)
			}
			for _, e := range l.events(t, began) {
				t.Errorf("a stand-in saw %s of %s", e.Kind, e.Instance)
			}
			if got := l.values(t, numThreads); !equal(got, old) {
				t.Errorf("settings: %v, want %v", got, old)
			}
		})
	}
}

// TestTheDatabaseIsNotNeededToPutSettingsBack: no run starts without its
// record, and the settings of the last one go back all the same.
func TestTheDatabaseIsNotNeededToPutSettingsBack(t *testing.T) {
	l := smallLab(t)
	old := l.setDifferent(t)
	c := start(t, brctlCrashes, []string{"BRCTL_CRASH_AT=before_engine_start"}, "run-now", "-c", l.config, "nightly")
	c.wait(t, runLimit)
	began := time.Now()
	for _, name := range []string{"state.db", "state.db-wal"} {
		if err := os.WriteFile(filepath.Join(l.stateDir(), name), []byte("not a database"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refused := run(t, 1, "run-now", "-c", l.config, "nightly")
	if !strings.Contains(refused.err.String(), "damaged") {
		t.Errorf("the refusal says %q, want that the database is damaged", refused.err.String())
	}
	l.checkRestored(t, began, old)
	l.nothingPending(t)
}

// TestPDAndTiDBMayRestartUnderARun: one look that fails is no news.
func TestPDAndTiDBMayRestartUnderARun(t *testing.T) {
	l := startLab(t, "--hosts", "2", "--tikv-per-host", "2", "--cores", "16", "--size", "600GiB", "--tables", "20", "--rows", "50", "--pd", "3")
	old := l.setDifferent(t)
	began := time.Now()
	c := start(t, brctl, nil, "run-now", "-c", l.config, "nightly", "-o", "json")
	l.underway(t, c, began)
	l.ctl(t, "tidb", "restart")
	l.ctl(t, "pd", "restart")
	c.wait(t, runLimit)
	r := c.result(t)
	t.Logf("the run ended as %s (%s): %s", r.Status, r.Reason, r.Message)
	if r.Status != "succeeded" {
		t.Errorf("status %s (%s): %s", r.Status, r.Reason, r.Message)
	}
	l.noBR(t)
	l.checkRestored(t, began, old)
	l.nothingPending(t)
}
