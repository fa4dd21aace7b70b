package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/pkg/policy"
)

func TestExpectedLagFollowsTheQueue(t *testing.T) {
	tests := []struct {
		name    string
		c       int
		batch   int
		refresh time.Duration
		region  uint64
		k       float64
		want    time.Duration
	}{
		{"the measured tier with TiKV's defaults", 16, 8, time.Minute, 96 * policy.MiB, 6, time.Minute + 2048*time.Second},
		{"under control", 1, 1, 10 * time.Second, 96 * policy.MiB, 6, 26 * time.Second},
		{"larger regions", 1, 1, 10 * time.Second, 240 * policy.MiB, 6, 50 * time.Second},
		{"a cluster too slow for the clock", 256, 1 << 40, time.Minute, policy.TiB, 1e-9, 1<<63 - 1},
		{"no rate at all", 1, 1, time.Second, policy.MiB, 0, 1<<63 - 1},
	}
	for _, tt := range tests {
		if got := policy.ExpectedLag(tt.c, tt.batch, tt.refresh, tt.region, tt.k); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestControlKeepsTheQueueShort(t *testing.T) {
	tests := []struct {
		name    string
		br      string
		tables  int
		threads int
		want    int
	}{
		{"br 8.2 and later: one stream feeds all threads", "v8.2.0", 0, 4, 1},
		{"br 8.2 and later: whatever the tables", "v8.5.1", 100000, 4, 1},
		{"before, few big tables: the next one is ready", "v7.5.1", 10, 4, 2},
		{"before, one table", "v7.5.1", 1, 4, 1},
		// X/r is 34952.53 regions of 100 MiB over 12 stores: 0.2913 per table and store.
		{"before, tables smaller than a region per store", "v7.5.1", 10000, 4, 14},
		{"before, tiny tables", "v7.5.1", 10000000, 4, 256},
		{"before, tables unknown: br's default", "v7.5.1", 0, 4, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := offline(t, policy.OfflineSpec{Bytes: 10 * policy.TiB, Hosts: 3, TiKVPerHost: 4, VCores: 48, Version: "v7.5.1", Tables: tt.tables})
			c.RegionBytes = 100 * policy.MiB
			p := mustPlan(t, policy.PlanInput{Cluster: c, BRVersion: tt.br, Options: policy.Options{Control: true, NumThreads: &tt.threads}})
			if p.Concurrency != tt.want {
				t.Errorf("got C=%d, want %d", p.Concurrency, tt.want)
			}
			if why := reason(p, "concurrency"); !strings.Contains(why, "left the tier's 16 for control") {
				t.Errorf("the plan left the table without saying so: %q", why)
			}
		})
	}
}

func TestControlSetsBatchAndTickOnEveryInstance(t *testing.T) {
	p := mustPlan(t, policy.PlanInput{Cluster: example1(t), BRVersion: "v8.5.0", Options: policy.Options{Control: true}})
	if p.BatchSize != 1 || p.RefreshInterval != 10*time.Second || p.Forecast.ControlLag != 26*time.Second {
		t.Errorf("got batch %d, refresh %s, lag %s; want 1, 10s, 26s", p.BatchSize, p.RefreshInterval, p.Forecast.ControlLag)
	}
	if len(p.Settings) != 3*12 {
		t.Errorf("got %d settings, want three for each of 12 instances", len(p.Settings))
	}
	var got []string
	for _, s := range p.Settings[:3] {
		got = append(got, s.String())
	}
	want := []string{
		"host1:20160 backup.num-threads = 2",
		"host1:20160 backup.batch-size = 1",
		"host1:20160 backup.auto-tune-refresh-interval = 10s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheLagIsForecastWithoutControlToo(t *testing.T) {
	p := mustPlan(t, policy.PlanInput{Cluster: example1(t)})
	if want := time.Minute + 16*8*16*time.Second; p.Forecast.ControlLag != want || len(p.Settings) != 12 {
		t.Errorf("got lag %s and %d settings, want %s and num-threads only", p.Forecast.ControlLag, len(p.Settings), want)
	}
	c := example1(t)
	c.Version = "v8.5.0" // regions of 256 MiB
	p = mustPlan(t, policy.PlanInput{Cluster: c})
	if want := 60 + 16*8*256.0/6; p.Forecast.ControlLag.Round(time.Millisecond) != time.Duration(want*1e9).Round(time.Millisecond) {
		t.Errorf("on v8.5: got lag %s, want %v s", p.Forecast.ControlLag, want)
	}
}

func TestThePoolRuleIsNamedByVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v8.5.1": "ignores shrinks of ten threads or fewer",
		"v8.5.2": "is rebuilt by each request",
	} {
		c := example1(t)
		c.Version = version
		if why := reason(mustPlan(t, policy.PlanInput{Cluster: c}), "control_lag"); !strings.Contains(why, want) {
			t.Errorf("%s: got %q, want %q in it", version, why, want)
		}
	}
}

func TestAGivenConcurrencyThatSlowsACutIsWarnedAbout(t *testing.T) {
	o := policy.Options{Control: true, Concurrency: new(16)}
	p := mustPlan(t, policy.PlanInput{Cluster: example1(t), BRVersion: "v8.5.0", Options: o})
	wantWarning(t, p, "the given concurrency makes a cut of threads wait for up to 4m26s; 1 keeps the threads busy as well")
	o.Control = false
	p = mustPlan(t, policy.PlanInput{Cluster: example1(t), BRVersion: "v8.5.0", Options: o})
	if all := strings.Join(p.Warnings, " "); strings.Contains(all, "cut of threads") {
		t.Errorf("without control nothing is cut; got %q", all)
	}
}
