package policy_test

import (
	"strings"
	"testing"

	"github.com/brctl/brctl/pkg/policy"
)

func TestWhereTiKVsAutoTuneWouldRunFewerThreadsIsSaid(t *testing.T) {
	// one is a host of so many cores with its base load, and four threads to give.
	one := func(cores, base float64) policy.Cluster {
		c := offline(t, policy.OfflineSpec{Bytes: 3 * policy.TiB, Hosts: 1, TiKVPerHost: 1, VCores: cores, Version: "v8.5.0"})
		c.Hosts[0].BaseLoad, c.Hosts[0].BaseKnown = base, true
		return c
	}
	assumed, off, sizeless := one(16, 0.65), one(16, 0.65), one(16, 0.65)
	assumed.Hosts[0].BaseKnown = false
	off.Stores[0].AutoTuneOff = true
	sizeless.Hosts[0].Cores, sizeless.Stores[0].Cores = 0, 0
	shared := offline(t, policy.OfflineSpec{Bytes: 3 * policy.TiB, Hosts: 1, TiKVPerHost: 4, VCores: 16, Version: "v8.5.0"})
	shared.Hosts[0].BaseLoad, shared.Hosts[0].BaseKnown = 0.65, true
	bound := shared
	bound.Stores = append([]policy.Store(nil), shared.Stores...)
	for i := range bound.Stores {
		bound.Stores[i].Cores = 4 // NUMA; each may use a quarter, of which 2.6 are taken
	}
	const prefix = "TiKV's auto-tune may run fewer threads than planned while the base load lasts: "
	cases := map[string]struct {
		cluster policy.Cluster
		threads int
		want    string
	}{
		"16 cores at 65%: floor(5.6) - 3":       {one(16, 0.65), 4, prefix + "2 of 4 on host1:20160; the backup would take 24h16m21s instead of 12h8m11s"},
		"exactly as many as asked":              {one(16, 0.65), 2, ""},
		"16 cores at 25%: 12 - 3":               {one(16, 0.25), 8, ""},
		"one fewer":                             {one(10, 0.2), 7, prefix + "6 of 7 on host1:20160; the backup would take 8h5m27s instead of 6h56m6s"},
		"a host that has nothing left":          {one(16, 1), 4, prefix + "1 of 4 on host1:20160; the backup would take 48h32m43s instead of 12h8m11s"},
		"one core":                              {one(1, 0.9), 1, ""},
		"auto-tune is off":                      {off, 4, ""},
		"the base load is only assumed":         {assumed, 4, ""},
		"cores are unknown":                     {sizeless, 4, ""},
		"TiKV does not see its neighbours' use": {shared, 4, ""},
		"each by its own limit":                 {bound, 4, prefix + "1 of 4 on host1:20160, 1 of 4 on host1:20161, 1 of 4 on host1:20162, 1 of 4 on host1:20163; the backup would take 12h8m11s instead of 3h2m3s"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := mustPlan(t, policy.PlanInput{Cluster: tc.cluster, Options: policy.Options{NumThreads: &tc.threads}})
			var found []string
			for _, w := range plan.Warnings {
				if strings.Contains(w, "auto-tune") {
					found = append(found, w)
				}
			}
			if got := strings.Join(found, "\n"); got != tc.want {
				t.Errorf("got %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestTheAutoTuneWarningChangesNoForecast(t *testing.T) {
	c := offline(t, policy.OfflineSpec{Bytes: 3 * policy.TiB, Hosts: 3, TiKVPerHost: 1, VCores: 16, Version: "v8.5.0"})
	in := policy.PlanInput{Cluster: c, Options: policy.Options{NumThreads: new(4), BaseLoad: new(0.65)}}
	on := mustPlan(t, in)
	for i := range c.Stores {
		c.Stores[i].AutoTuneOff = true
	}
	off := mustPlan(t, in)
	if len(on.Warnings) != len(off.Warnings)+1 || on.Forecast != off.Forecast {
		t.Errorf("got %q and %q, %+v and %+v", on.Warnings, off.Warnings, on.Forecast, off.Forecast)
	}
}

func TestAStoreThatBRDoesNotAskIsNotWarnedAbout(t *testing.T) {
	c := offline(t, policy.OfflineSpec{Bytes: 3 * policy.TiB, Hosts: 2, TiKVPerHost: 1, VCores: 16, Version: "v8.5.0"})
	c.Hosts[0].BaseLoad, c.Hosts[0].BaseKnown = 0.2, true
	c.Hosts[1].BaseLoad, c.Hosts[1].BaseKnown = 0.9, true
	c.Stores[0].Labels = map[string]string{"backup": "yes"}
	plan := mustPlan(t, policy.PlanInput{Cluster: c, Options: policy.Options{ReplicaReadLabel: "backup:yes"}})
	for _, w := range plan.Warnings {
		if strings.Contains(w, "auto-tune") {
			t.Error(w)
		}
	}
}
