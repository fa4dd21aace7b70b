//go:build system

package test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pingcap/kvproto/pkg/brpb"
)

// TestARealBackupFromPlanToRecord is the main job. Its length is compared with
// the forecast, which proves the plumbing and no more: the lab's stand-ins and
// the planner use the same formula.
func TestARealBackupFromPlanToRecord(t *testing.T) {
	l := startLab(t, "--hosts", "3", "--tikv-per-host", "2", "--cores", "48", "--size", "1280GiB")
	old := l.setDifferent(t)
	began := time.Now()

	r := run(t, 0, "run-now", "-c", l.config, "nightly", "-o", "json").result(t)

	if r.Status != "succeeded" || r.BR.ExitCode != 0 {
		t.Fatalf("status %s (%s), br exit code %d", r.Status, r.Message, r.BR.ExitCode)
	}
	l.checkThereAndBack(t, began, old, fmt.Sprint(r.Plan.NumThreads))
	checkArgv(t, r)
	l.checkRequests(t, began, r)
	meta := readBackupMeta(t, r.StorageURL)
	if meta.EndVersion != r.BackupTS || meta.ClusterId != l.Cluster {
		t.Errorf("backupmeta has end_version %d and cluster %d, the record %d and %d", meta.EndVersion, meta.ClusterId, r.BackupTS, l.Cluster)
	}
	off := r.Duration/r.Forecast - 1
	t.Logf("duration %.1f s, forecast %.1f s (%+.1f %%)", r.Duration, r.Forecast, 100*off)
	if math.Abs(off) > 0.15 {
		t.Errorf("duration %.1f s is %+.1f %% off the forecast of %.1f s, want within 15 %%", r.Duration, 100*off, r.Forecast)
	}
	l.noBR(t)
	l.nothingPending(t)
}

// checkThereAndBack reads from the stand-ins that each instance got the planned
// value and then its own old one.
func (l *lab) checkThereAndBack(t *testing.T, since time.Time, old map[string]string, planned string) {
	t.Helper()
	seen := map[string][]string{}
	for _, e := range l.events(t, since) {
		if e.Kind == "config_change" && e.Item == numThreads {
			seen[e.Instance] = append(seen[e.Instance], fmt.Sprint(e.Value))
		}
	}
	for instance, before := range old {
		if want := []string{planned, before}; !slices.Equal(seen[instance], want) {
			t.Errorf("%s saw num-threads %v, want %v", instance, seen[instance], want)
		}
	}
	if got := l.values(t, numThreads); !equal(got, old) {
		t.Errorf("settings afterwards: %v, want %v", got, old)
	}
}

func checkArgv(t *testing.T, r result) {
	t.Helper()
	argv := strings.Join(r.BR.Argv, " ")
	for _, want := range []string{
		"--checksum=false",
		fmt.Sprintf("--concurrency %d", r.Plan.Concurrency),
		"--compression " + r.Plan.Compression,
		"--storage " + r.StorageURL,
	} {
		if !strings.Contains(argv+" ", want+" ") {
			t.Errorf("br's arguments lack %q: %s", want, argv)
		}
	}
}

// checkRequests reads from the stand-ins that br did what it was told.
func (l *lab) checkRequests(t *testing.T, since time.Time, r result) {
	t.Helper()
	stores, streams := map[uint64]bool{}, 0
	for _, e := range l.events(t, since) {
		if e.Kind != "backup_request" {
			continue
		}
		stores[e.StoreID] = true
		streams = max(streams, e.OpenStreams)
		if !strings.EqualFold(e.Compression, r.Plan.Compression) || e.EndVersion != r.BackupTS {
			t.Errorf("store %d was asked for %s at %d, want %s at %d", e.StoreID, e.Compression, e.EndVersion, r.Plan.Compression, r.BackupTS)
		}
	}
	if len(stores) != len(l.Stores) {
		t.Errorf("%d of %d stores were asked", len(stores), len(l.Stores))
	}
	if streams > r.Plan.Concurrency {
		t.Errorf("a store had %d streams open, concurrency is %d", streams, r.Plan.Concurrency)
	}
}

func readBackupMeta(t *testing.T, url string) *backup.BackupMeta {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(strings.TrimPrefix(url, "local://"), "backupmeta"))
	if err != nil {
		t.Fatal(err)
	}
	meta := &backup.BackupMeta{}
	if err := meta.Unmarshal(data); err != nil {
		t.Fatal(err)
	}
	return meta
}

// smallLab is enough for everything that is not about length: a backup of
// about ten seconds at two threads.
func smallLab(t *testing.T) *lab {
	t.Helper()
	return startLab(t, "--hosts", "2", "--tikv-per-host", "2", "--cores", "16", "--size", "90GiB", "--tables", "20", "--rows", "50")
}

// underway waits until br of the lab works and backs up.
func (l *lab) underway(t *testing.T, c *call, since time.Time) {
	t.Helper()
	waitFor(t, time.Minute, "the backup to be under way", func() bool {
		select {
		case <-c.done:
			t.Fatalf("brctl ended early:\n%s\n%s", c.out.String(), c.err.String())
		default:
		}
		return slices.ContainsFunc(l.events(t, since), func(e event) bool { return e.Kind == "backup_request" })
	})
}

func TestOneRunPerClusterAndSettingsBackAfterCtrlC(t *testing.T) {
	l := smallLab(t)
	old := l.setDifferent(t)
	otherHost := l.withConfig(t, "other-host.yaml", l.stateDir(), filepath.Join(l.dir, "state-other"))
	for _, second := range []bool{false, true} { // Ctrl-C once, and again while settings go back
		began := time.Now()
		c := start(t, brctl, nil, "run-now", "-c", l.config, "nightly", "-o", "json")
		l.underway(t, c, began)

		refused := run(t, 75, "run-now", "-c", otherHost, "nightly", "-o", "json").result(t)
		sameDir := run(t, 75, "run-now", "-c", l.config, "nightly")
		leaseless := run(t, 75, "run-now", "-c", otherHost, "nightly", "-o", "json", "--no-lease").result(t)

		c.signal(t, syscall.SIGINT)
		if second {
			time.Sleep(100 * time.Millisecond) // the second press of an impatient person
			c.signal(t, syscall.SIGINT)
		}
		if code := c.wait(t, time.Minute); code != 4 {
			t.Fatalf("exit code %d after Ctrl-C, want 4\n%s", code, c.err.String())
		}
		r := c.result(t)
		if r.Status != "cancelled" || r.Reason != "operator" {
			t.Errorf("status %s (%s), want cancelled (operator)", r.Status, r.Reason)
		}
		if refused.Status != "skipped" || refused.Reason != "overlap" || !strings.Contains(refused.Message, r.RunID) {
			t.Errorf("the other host got %s (%s) %q, want skipped (overlap) with run %s", refused.Status, refused.Reason, refused.Message, r.RunID)
		}
		if leaseless.Reason != "conflicting_work" || !strings.Contains(leaseless.Message, "another backup is running") {
			t.Errorf("without the lease: %s (%s) %q, want that backup threads are working", leaseless.Status, leaseless.Reason, leaseless.Message)
		}
		if !strings.Contains(sameDir.err.String(), "in use by brctl with pid") {
			t.Errorf("the same state directory said %q, want who uses it", sameDir.err.String())
		}
		l.checkThereAndBack(t, began, old, fmt.Sprint(r.Plan.NumThreads))
		l.noBR(t)
		l.nothingPending(t)
	}
}

func TestABackupThatFailsPutsEverythingBack(t *testing.T) {
	l := smallLab(t)
	old := l.setDifferent(t)
	l.ctl(t, "target", "full")
	began := time.Now()
	r := startAndWait(t, l, 1)
	if r.Status != "failed" || r.Reason != "engine" {
		t.Errorf("status %s (%s), want failed (engine)", r.Status, r.Reason)
	}
	if !strings.Contains(r.Message, "in store") || !strings.Contains(r.Message, "full") {
		t.Errorf("message %q names neither the store nor what to look for: br itself keeps the store's words to itself", r.Message)
	}
	l.checkThereAndBack(t, began, old, fmt.Sprint(r.Plan.NumThreads))
	l.ctl(t, "target", "ok")

	// The account is the one that README asks for.
	l.ctl(t, "sql", "CREATE USER 'brctl'@'%'", "GRANT CONFIG, PROCESS ON *.* TO 'brctl'@'%'")
	l.config = l.withConfig(t, "account.yaml", "user: root", "user: brctl")
	if r := startAndWait(t, l, 0); r.Status != "succeeded" {
		t.Errorf("after the target is free again: %s (%s)", r.Status, r.Message)
	}
}

func startAndWait(t *testing.T, l *lab, code int) result {
	t.Helper()
	return run(t, code, "run-now", "-c", l.config, "nightly", "-o", "json").result(t)
}
