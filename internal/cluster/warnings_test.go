package cluster_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/cluster"
	"github.com/brctl/brctl/pkg/policy"
)

func TestWhatMakesTheForecastWrongIsSaid(t *testing.T) {
	// four returns four equal stores with 100 leaders each, changed by a case.
	four := func(change func([]policy.Store)) []policy.Store {
		var out []policy.Store
		for i := range 4 {
			s := tikv(uint64(i+1), fmt.Sprint("h", i+1), 0)
			s.LeaderCount, s.Version = 100, "8.5.0"
			out = append(out, s)
		}
		change(out)
		return out
	}
	cases := map[string]struct {
		change func([]policy.Store)
		want   []string
	}{
		"nothing": {func([]policy.Store) {}, nil},
		"leaders at one and a half times the share": {func(s []policy.Store) {
			s[0].LeaderCount, s[1].LeaderCount = 150, 50
		}, nil},
		"leaders above that": {func(s []policy.Store) { s[0].LeaderCount, s[1].LeaderCount = 160, 40 }, []string{
			"leaders are spread unevenly, so the forecast duration is a lower bound; these stores lead far more regions than their part of the data: store 1 at h1:20160 (160, its part is 100)",
		}},
		"more leaders where there is more data": {func(s []policy.Store) {
			s[0].LeaderCount, s[0].UsedBytes = 200, 2*s[0].UsedBytes
		}, nil},
		"too few leaders to tell": {func(s []policy.Store) {
			for i := range s {
				s[i].LeaderCount = 20
			}
			s[0].LeaderCount = 50
		}, nil},
		"a silent store leads nothing": {func(s []policy.Store) { s[0].Silent, s[0].LeaderCount = true, 0 }, []string{
			"no heartbeat, so not set and not watched, while br may be many times slower (pingcap/tidb#42973): store 1 at h1:20160",
		}},
		"a silent store of unknown size": {func(s []policy.Store) { s[0].Silent, s[0].CapacityBytes, s[0].UsedBytes = true, 0, 0 }, []string{
			"no heartbeat, so not set and not watched, while br may be many times slower (pingcap/tidb#42973): store 1 at h1:20160",
			"PD does not know how much these stores hold, so the amount of data and the duration are forecast too low: store 1 at h1:20160",
		}},
		"an upgrade": {func(s []policy.Store) { s[3].Version = "8.5.2" }, []string{
			"TiKV runs in several versions, as in an upgrade: 8.5.0 on 3, 8.5.2 on 1",
		}},
		"a scale-in": {func(s []policy.Store) { s[2].State = policy.StoreOffline }, []string{
			"being scaled in, which moves regions while they are backed up: store 3 at h3:20160 (100 leaders)",
		}},
		"a scale-in that has moved all leaders, of another version": {func(s []policy.Store) {
			s[2].State, s[2].LeaderCount, s[2].Version = policy.StoreOffline, 0, "8.1.0"
		}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cores := map[string]float64{"h1": 16, "h2": 16, "h3": 16, "h4": 16}
			c := load(t, cluster.Sources{PD: fakePD{stores: four(tc.change)}, HostCores: cores})
			if diff := cmp.Diff(tc.want, c.Warnings); diff != "" {
				t.Errorf("warnings differ (-want +got):\n%s", diff)
			}
		})
	}
}
