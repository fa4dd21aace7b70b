package runner_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/runner"
)

func TestABackupDoesEverythingInOrderAndPutsEverythingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, run := backUp(t, w, "run-1", nil)
		checkClean(t, w)
		if run.Status != policy.RunSucceeded || run.Reason != "" || run.Message != "" {
			t.Errorf("got %s %s %q, want succeeded", run.Status, run.Reason, run.Message)
		}
		if diff := cmp.Diff(happyOrder(), w.done()); diff != "" {
			t.Errorf("effects (-want +got):\n%s", diff)
		}
	})
}

// happyOrder is the order of a backup in which nothing goes wrong.
func happyOrder() []string {
	sets, backs := []string{}, []string{}
	for _, tikv := range []string{"host1:20160", "host1:20161", "host2:20160", "host2:20161"} {
		sets = append(sets,
			"settings.set "+tikv+" backup.num-threads = 2",
			"settings.set "+tikv+" backup.batch-size = 1",
			"settings.set "+tikv+" backup.auto-tune-refresh-interval = 10s")
		backs = append(backs,
			"journal.put_back "+tikv+" backup.auto-tune-refresh-interval",
			"journal.put_back "+tikv+" backup.batch-size",
			"journal.put_back "+tikv+" backup.num-threads")
	}
	order := []string{
		"records.save lease", "lease.take",
		"records.save preflight", "engine.version", "engine.inspect local:///backups/run-1",
		"records.save plan", "engine.prepare",
		"records.save apply", "lease.check", "journal.intend run-1", "records.save apply",
	}
	order = append(order, sets...)
	order = append(order,
		"records.save settle",
		"records.save backup", "lease.check", "records.save backup", "engine.start", "journal.child_started", "records.save backup",
		"records.save backup", "records.save backup", // service safepoint, BackupTS
		"attempt.wait",
		"records.save verify", "engine.confirm",
		"records.save end", "engine.recover", "journal.child_gone",
		"records.save restore", "journal.restore")
	order = append(order, backs...)
	return append(order, "records.save record", "records.save record succeeded", "lease.release")
}

func TestARunTellsAllThatIsKnownOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		begin := time.Now()
		_, run := backUp(t, w, "run-1", nil)
		got := w.saved("run-1")
		if got.Size() != 1<<30 || got.Duration() != 16*time.Second || got.BackupTS != backupTS() || got.Attempts != 1 ||
			got.FenceToken != 42 || got.ServiceSafePoint != "" || got.Child != nil || got.Plan.NumThreads != 2 {
			t.Errorf("saved run %+v", got)
		}
		if !got.CreatedAt.Equal(begin) || !got.EndedAt.Equal(time.Now()) {
			t.Errorf("created %s, ended %s", got.CreatedAt, got.EndedAt)
		}
		for _, c := range run.Settings {
			if c.Old != w.original[c.SettingKey] || c.Restored != runner.Restored || c.State != policy.SetApplied {
				t.Errorf("%s: %+v, was %s", c.SettingKey, c, w.original[c.SettingKey])
			}
		}
		if len(run.Settings) != 12 {
			t.Errorf("%d settings in the run, want 12: none of the TiFlash, none of the tombstone", len(run.Settings))
		}
		if diff := cmp.Diff(happyEvents(), kinds(w.events["run-1"])); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func happyEvents() []string {
	return []string{
		"step", "step", "step", "planned", "step", "settings_applied", "step", "step", "attempt",
		"service_safe_point", "backup_ts", "round", "diagnostic",
		"step", "step", "step", "settings_restored", "step", "ended",
	}
}

func kinds(events []policy.Event) []string {
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = e.Kind
	}
	return out
}

func TestASettingThatIsAlreadyAsWantedIsNotTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		key := policy.SettingKey{Instance: "host1:20161", Name: policy.ItemNumThreads}
		w.at(key.Instance).settings[key.Name], w.original[key] = "2", "2"
		_, run := backUp(t, w, "run-1", nil)
		checkClean(t, w)
		for _, c := range run.Settings {
			if c.SettingKey == key {
				t.Errorf("the run changed %+v", c)
			}
		}
	})
}

func TestASettingThatMeansTheSameIsNotTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.same = func(a, b string) bool {
			short := strings.NewReplacer("1m", "60s")
			return short.Replace(a) == short.Replace(b)
		}
		key := policy.SettingKey{Instance: "host1:20160", Name: policy.ItemRefreshInterval}
		w.at(key.Instance).settings[key.Name], w.original[key] = "1m", "1m"
		req := request()
		req.Options.RefreshInterval = new(time.Minute)
		l, run := w.begin(nil), newRun("run-1")
		_, err := l.run(req, run)
		checkEnded(t, l, run, err)
		checkClean(t, w)
		if contains(w.done(), "settings.set "+key.String()) || !contains(w.done(), "settings.set host1:20161 "+key.Name) {
			t.Errorf("effects %q, want no SET of %s", w.done(), key)
		}
	})
}

func TestTheEngineStartsOnlyWhenEveryTiKVRunsNoMoreThreadsThanPlanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var soft []int
		l := w.begin(map[string]fault{"engine.start#1": func(*life) error {
			for _, s := range w.stores {
				soft = append(soft, s.soft)
			}
			return nil
		}})
		begin := time.Now()
		run := newRun("run-1")
		if _, err := l.run(request(), run); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]int{2, 2, 2, 2}, soft); diff != "" {
			t.Errorf("soft limits at the start of br (-want +got):\n%s", diff)
		}
		const probe = 2 * time.Second
		if got := run.EngineStartedAt.Sub(begin); got != probe+gaugeTick {
			t.Errorf("br started after %s, want %s: the probe and one tick of TiKV", got, probe+gaugeTick)
		}
	})
}
