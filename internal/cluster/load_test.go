package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/cluster"
	"github.com/brctl/brctl/pkg/policy"
)

// fakePD is a PD that knows its stores, or fails.
type fakePD struct {
	stores []policy.Store
	err    error
}

func (f fakePD) ClusterID(context.Context) (uint64, error)               { return 7300000000000000021, f.err }
func (f fakePD) ClusterVersion(context.Context) (string, error)          { return "8.5.0", f.err }
func (f fakePD) MaxReplicas(context.Context) (int, error)                { return 3, f.err }
func (f fakePD) StoresWithSizes(context.Context) ([]policy.Store, error) { return f.stores, f.err }

// tikv is a store that is up, on port 20160+n of host.
func tikv(id uint64, host string, n int) policy.Store {
	return policy.Store{
		ID: id, Host: host, State: policy.StoreUp, CapacityBytes: policy.TiB, UsedBytes: 100 * policy.GiB,
		Address: fmt.Sprintf("%s:%d", host, 20160+n), StatusAddress: fmt.Sprintf("%s:%d", host, 20180+n),
	}
}

// quotas answers each status port with a fixed number.
func quotas(byStatus map[string]float64) func(context.Context, policy.Store) (float64, error) {
	return func(_ context.Context, s policy.Store) (float64, error) {
		q, ok := byStatus[s.StatusAddress]
		if !ok {
			return 0, errors.New("connection refused")
		}
		return q, nil
	}
}

func hardware(byAddress map[string]cluster.Hardware) func(context.Context) (map[string]cluster.Hardware, []string, error) {
	return func(context.Context) (map[string]cluster.Hardware, []string, error) { return byAddress, nil, nil }
}

func load(t *testing.T, src cluster.Sources) policy.Cluster {
	t.Helper()
	c, err := cluster.Load(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mixed is a TiFlash, a TiKV that is up, one that is being scaled in, one that
// is cut off and one that is gone.
func mixed() []policy.Store {
	up, offline, cutOff, gone := tikv(1, "192.0.2.21", 0), tikv(4, "192.0.2.22", 0), tikv(5, "192.0.2.23", 0), tikv(6, "192.0.2.24", 0)
	up.LeaderCount = 800
	offline.State, offline.LeaderCount = policy.StoreOffline, 812
	cutOff.Silent, cutOff.LastHeartbeat = true, time.Date(2026, 11, 30, 2, 0, 0, 0, time.UTC)
	gone.State = policy.StoreTombstone
	tiflash := policy.Store{ID: 823752656, Address: "192.0.2.17:3930", StatusAddress: "192.0.2.17:20292", Host: "192.0.2.17", State: policy.StoreUp, TiFlash: true, Silent: true}
	return []policy.Store{up, offline, cutOff, gone, tiflash}
}

func ids(stores []policy.Store) []uint64 {
	var out []uint64
	for _, s := range stores {
		out = append(out, s.ID)
	}
	return out
}

func TestOnlyLivingTiKVIsATargetAndOnlyItIsAsked(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]int{}
	c := load(t, cluster.Sources{
		PD: fakePD{stores: mixed()},
		Quota: func(_ context.Context, s policy.Store) (float64, error) {
			mu.Lock()
			defer mu.Unlock()
			asked[s.StatusAddress]++
			return 16, nil
		},
	})
	targets, err := cluster.Targets(c)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]uint64{1, 4}, ids(targets)); diff != "" {
		t.Errorf("targets differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"192.0.2.21:20180": 1, "192.0.2.22:20180": 1}, asked); diff != "" {
		t.Errorf("status ports asked differ (-want +got):\n%s", diff)
	}
	want := []string{
		"no heartbeat, so not set and not watched, while br may be many times slower (pingcap/tidb#42973): store 5 at 192.0.2.23:20160 (last 2026-11-30T02:00:00Z)",
		"being scaled in, which moves regions while they are backed up: store 4 at 192.0.2.22:20160 (812 leaders)",
	}
	if diff := cmp.Diff(want, c.Warnings); diff != "" {
		t.Errorf("warnings differ (-want +got):\n%s", diff)
	}
}

func TestACompleteClusterHasNoWarnings(t *testing.T) {
	stores := []policy.Store{tikv(1, "a", 0), tikv(2, "a", 1), tikv(3, "b", 0)}
	c := load(t, cluster.Sources{
		Name:  "prod",
		PD:    fakePD{stores: stores},
		Quota: quotas(map[string]float64{"a:20180": 48, "a:20181": 48, "b:20180": 32}),
		Hardware: hardware(map[string]cluster.Hardware{
			"a:20160": {Logical: 48, Physical: 24}, "a:20161": {Logical: 48, Physical: 24}, "b:20160": {Logical: 32, Physical: 32},
		}),
		RegionBytes: func(context.Context, policy.Store) (uint64, error) { return 256 * policy.MiB, nil },
		Tables:      func(context.Context) (int, error) { return 40, nil },
	})
	want := policy.Cluster{
		ID: 7300000000000000021, Name: "prod", Version: "8.5.0", Replicas: 3, Tables: 40, RegionBytes: 256 * policy.MiB,
		Stores: []policy.Store{tikv(1, "a", 0), tikv(2, "a", 1), tikv(3, "b", 0)},
		Hosts:  []policy.Host{{Name: "a", Cores: 48, CoresSource: "quota"}, {Name: "b", Cores: 32, CoresSource: "quota"}},
	}
	want.Stores[0].Cores, want.Stores[1].Cores, want.Stores[2].Cores = 48, 48, 32
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("cluster differs (-want +got):\n%s", diff)
	}
}

func TestNoUsableStoreIsRefused(t *testing.T) {
	gone, tiflash, empty, silent := tikv(1, "a", 0), tikv(2, "b", 0), tikv(3, "c", 0), tikv(4, "d", 0)
	gone.State, tiflash.TiFlash, empty.State, silent.Silent = policy.StoreTombstone, true, policy.StoreOffline, true
	cases := map[string]struct {
		stores []policy.Store
		want   error
		text   string
	}{
		"no store at all":      {nil, policy.ErrNoStores, "no usable TiKV store among the 0 that pd lists"},
		"none that br can ask": {[]policy.Store{gone, tiflash, empty}, policy.ErrNoStores, "no usable TiKV store among the 3 that pd lists"},
		"all silent":           {[]policy.Store{silent, gone}, policy.ErrAllSilent, "every TiKV store is silent: no heartbeat for over 20 s"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := cluster.Targets(load(t, cluster.Sources{PD: fakePD{stores: tc.stores}}))
			if !errors.Is(err, tc.want) || err.Error() != tc.text {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAPDThatDoesNotAnswerIsAnError(t *testing.T) {
	gone := errors.New("gone")
	if _, err := cluster.Load(t.Context(), cluster.Sources{PD: fakePD{err: gone}}); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestWhatCannotBeReadIsUnknownAndSaidOnce(t *testing.T) {
	var stores []policy.Store
	for i := range 8 {
		stores = append(stores, tikv(uint64(i+1), fmt.Sprint("h", i), 0))
	}
	stores[7].StatusAddress = ""
	down := errors.New("connection refused")
	c := load(t, cluster.Sources{
		PD:          fakePD{stores: stores},
		Quota:       quotas(map[string]float64{"h0:20180": 16}),
		Hardware:    func(context.Context) (map[string]cluster.Hardware, []string, error) { return nil, nil, down },
		RegionBytes: func(context.Context, policy.Store) (uint64, error) { return 0, down },
		Tables:      func(context.Context) (int, error) { return 0, down },
	})
	want := []string{
		"no status address, so CPU and threads are unknown: store 8 at h7:20160",
		"CPU quota not read from the status port of h1:20180 (connection refused), h2:20180 (connection refused), h3:20180 (connection refused), h4:20180 (connection refused), h5:20180 (connection refused), and 1 more",
		"cluster_hardware not read: connection refused",
		"region size not read: h2:20160: connection refused",
		"number of tables not read: connection refused",
		"cores of the host are unknown; set hosts.<host>.cores: h1, h2, h3, h4, h5, and 2 more",
	}
	if diff := cmp.Diff(want, c.Warnings); diff != "" {
		t.Errorf("warnings differ (-want +got):\n%s", diff)
	}
	if c.RegionBytes != 0 || c.Tables != 0 || c.Stores[1].Cores != 0 || c.Hosts[1] != (policy.Host{Name: "h1"}) {
		t.Errorf("a default crept in: %+v", c)
	}
}

func TestTheRegionSizeIsTakenFromTheFirstStoreThatAnswers(t *testing.T) {
	c := load(t, cluster.Sources{
		PD: fakePD{stores: []policy.Store{tikv(1, "a", 0), tikv(2, "b", 0)}},
		RegionBytes: func(_ context.Context, s policy.Store) (uint64, error) {
			if s.ID == 1 {
				return 0, errors.New("hangs")
			}
			return 96 * policy.MiB, nil
		},
	})
	if c.RegionBytes != 96*policy.MiB || len(c.Warnings) != 1 { // the cores
		t.Errorf("got %d, %q", c.RegionBytes, c.Warnings)
	}
}

func TestHangingSourcesCostOneTimeoutTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		var stores []policy.Store
		for i := range 1000 {
			stores = append(stores, tikv(uint64(i+1), fmt.Sprint("h", i), 0))
		}
		began := time.Now()
		c, err := cluster.Load(t.Context(), cluster.Sources{
			PD:          fakePD{stores: stores},
			Quota:       func(ctx context.Context, _ policy.Store) (float64, error) { return 0, hang(ctx) },
			Hardware:    func(ctx context.Context) (map[string]cluster.Hardware, []string, error) { return nil, nil, hang(ctx) },
			RegionBytes: func(ctx context.Context, _ policy.Store) (uint64, error) { return 0, hang(ctx) },
			Tables:      func(ctx context.Context) (int, error) { return 0, hang(ctx) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != cluster.DefaultTimeout {
			t.Errorf("took %s", took)
		}
		if len(c.Warnings) != 5 {
			t.Errorf("got %d warnings: %q", len(c.Warnings), c.Warnings)
		}
	})
}
