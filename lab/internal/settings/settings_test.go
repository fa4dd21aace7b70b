package settings_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/brctl/brctl/lab/internal/settings"
)

func instance(quota float64) settings.Instance {
	return settings.Instance{Quota: quota, BatchSize: 8, RefreshInterval: time.Minute, RegionSize: 96 << 20}
}

func open(t *testing.T, file string, quota float64) *settings.Settings {
	t.Helper()
	s, err := settings.Open(file, instance(quota))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNumThreadsOutOfRangeBecomesTheDefault(t *testing.T) {
	for _, tc := range []struct {
		quota float64
		asked float64
		want  int
	}{
		{8, 3, 3}, {8, 8, 8}, {8, 9, 4}, {8, 0, 4}, {8, 999, 4},
		{2.9, 3, 1}, {2.9, 2, 2}, {48, 100, 8}, {1, 0, 1},
	} {
		s := open(t, filepath.Join(t.TempDir(), "tikv.json"), tc.quota)
		changes, err := s.Set(map[string]any{"backup.num-threads": tc.asked}, true)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Backup().NumThreads; got != tc.want || changes[0].Effective != float64(tc.want) || changes[0].Asked != tc.asked {
			t.Errorf("asked %v of %v cores: got %d and %+v, want %d", tc.asked, tc.quota, got, changes[0], tc.want)
		}
	}
}

func TestTheFileKeepsWhatWasAskedAndARestartValidatesAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tikv.json")
	if _, err := open(t, file, 8).Set(map[string]any{"backup.num-threads": 12.0}, true); err != nil {
		t.Fatal(err)
	}
	if got := open(t, file, 8).Backup().NumThreads; got != 4 {
		t.Errorf("on 8 cores: got %d, want the default 4", got)
	}
	if got := open(t, file, 16).Backup().NumThreads; got != 12 {
		t.Errorf("on 16 cores: got %d, want the 12 of the file", got)
	}
}

func TestAChangeThatIsNotPersistedIsGoneAfterReload(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "tikv.json"), 16)
	if _, err := s.Set(map[string]any{"backup.num_threads": "2"}, false); err != nil {
		t.Fatal(err)
	}
	if got := s.Backup().NumThreads; got != 2 {
		t.Errorf("in force: got %d, want 2", got)
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := s.Backup().NumThreads; got != 8 {
		t.Errorf("after reload: got %d, want 8", got)
	}
}

func TestARefusedItemChangesNothing(t *testing.T) {
	for _, tc := range []struct {
		item string
		v    any
		want string
	}{
		{"backup.num_thread", 2.0, "unexpect fields: num_thread"},
		{"server.grpc-concurrency", 2.0, "config grpc-concurrency can not be changed"},
		{"backup.batch-size", -1.0, "failed to parse: -1"},
		{"backup.auto-tune-refresh-interval", "soon", "failed to parse: soon"},
	} {
		s := open(t, filepath.Join(t.TempDir(), "tikv.json"), 16)
		_, err := s.Set(map[string]any{tc.item: tc.v, "backup.enable-auto-tune": false}, true)
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s: got error %v, want %s", tc.item, err, tc.want)
		}
		if !s.Backup().AutoTune {
			t.Errorf("%s: another item of the same request was changed", tc.item)
		}
	}
}

func TestTreeNestsByTheDotsOfAName(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "tikv.json"), 16)
	backup := s.Tree()["backup"].(map[string]any)
	if got := backup["auto-tune-refresh-interval"]; got != "1m" {
		t.Errorf("got %v, want 1m", got)
	}
	if got := s.Tree()["coprocessor"].(map[string]any)["region-split-size"]; got != "96MiB" {
		t.Errorf("got %v, want 96MiB", got)
	}
}
