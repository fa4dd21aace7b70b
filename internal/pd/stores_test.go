package pd_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/pd/pdtest"
	"github.com/brctl/brctl/pkg/policy"
)

const storesPath = "/pd/api/v1/stores"

func TestStoresCarryAllThatPDKnows(t *testing.T) {
	fake, c := startOne(t)
	now := fake.Now().UTC()
	want := []policy.Store{
		{
			ID: 1, Address: "192.0.2.21:20160", StatusAddress: "192.0.2.21:20180", Host: "192.0.2.21",
			Version: "8.5.0", State: policy.StoreUp, Labels: map[string]string{"host": "h1", "zone": "a"},
			LastHeartbeat: now, StartedAt: now.Truncate(time.Second).Add(-time.Hour),
			CapacityBytes: 4 * policy.TiB, AvailableBytes: policy.TiB + 1, UsedBytes: 3*policy.TiB - 1,
			LeaderCount: 31396, RegionCount: 94188,
		},
		{ID: 2, Address: "192.0.2.22:20160", Host: "192.0.2.22", State: policy.StoreTombstone},
		{ID: 18446744073709551615, Address: "[2001:db8::1]:20160", StatusAddress: "[2001:db8::1]:20180", Host: "2001:db8::1", State: policy.StoreOffline, LeaderCount: 3, LastHeartbeat: now, CapacityBytes: policy.TiB, UsedBytes: 5},
	}
	fake.SetStores(want...)
	got, err := c.StoresWithSizes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stores differ (-want +got):\n%s", diff)
	}
	want[0].CapacityBytes, want[0].AvailableBytes, want[0].UsedBytes = 0, 0, 0
	want[2].CapacityBytes, want[2].UsedBytes = 0, 0
	got, err = c.Stores(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the list differs in more than sizes (-want +got):\n%s", diff)
	}
}

// The list of a cluster with a dead TiFlash, a TiKV that is being scaled in and
// one that is cut off.
const mixedStores = `{"count":4,"stores":[
 {"store":{"id":823752656,"address":"192.0.2.17:3930","labels":[{"key":"engine","value":"tiflash"},{"key":"host","value":"host17"}],"version":"v5.1.0-6-g04e5e8cc8-dirty","peer_address":"192.0.2.17:20170","status_address":"192.0.2.17:20292","last_heartbeat":1625548561877609889,"state_name":"Down"},"status":{"capacity":"7.163TiB","leader_count":0,"region_count":4873}},
 {"store":{"id":1,"address":"192.0.2.21:20160","status_address":"192.0.2.21:20180","version":"7.5.1","state_name":"Up"},"status":{"leader_count":31396}},
 {"store":{"id":4,"address":"192.0.2.22:20160","status_address":"192.0.2.22:20180","version":"7.5.1","state":1,"state_name":"Offline"},"status":{"leader_count":812}},
 {"store":{"id":5,"address":"192.0.2.23:20160","status_address":"192.0.2.23:20180","version":"7.5.1","state_name":"Disconnected"},"status":{"leader_count":0}}]}`

func TestStoresThatAreNotPlainTiKVAreToldApart(t *testing.T) {
	fake, c := startOne(t)
	// The TiFlash is not among those whose sizes are asked for: PD need not know it.
	fake.SetStores(policy.Store{ID: 1, UsedBytes: 7}, policy.Store{ID: 4, UsedBytes: 8}, policy.Store{ID: 5})
	fake.Reply(0, storesPath, http.StatusOK, mixedStores)
	got, err := c.StoresWithSizes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type view struct {
		ID              uint64
		State           policy.StoreState
		TiFlash, Silent bool
		Leaders         int
		Used            uint64
	}
	var views []view
	for _, s := range got {
		views = append(views, view{s.ID, s.State, s.TiFlash, s.Silent, s.LeaderCount, s.UsedBytes})
	}
	want := []view{
		{1, policy.StoreUp, false, false, 31396, 7},
		{4, policy.StoreOffline, false, false, 812, 8},
		{5, policy.StoreUp, false, true, 0, 0},
		{823752656, policy.StoreUp, true, true, 0, 0},
	}
	if diff := cmp.Diff(want, views); diff != "" {
		t.Errorf("stores differ (-want +got):\n%s", diff)
	}
}

func TestSilenceIsJudgedByPDsClock(t *testing.T) {
	fake, c := startOne(t)
	fake.Advance(-48 * time.Hour) // our clock is two days ahead
	beat := fake.Now().UTC()
	for age, want := range map[time.Duration][]bool{
		0:                {false, false, false, false},
		20 * time.Second: {false, false, false, false},
		21 * time.Second: {false, true, true, false},
	} {
		fake.SetStores(
			policy.Store{ID: 1, Address: "a:1", State: policy.StoreUp, LastHeartbeat: beat},
			policy.Store{ID: 2, Address: "b:1", State: policy.StoreUp, LastHeartbeat: beat.Add(-age)},
			policy.Store{ID: 3, Address: "c:1", State: policy.StoreOffline, LastHeartbeat: beat.Add(-age), LeaderCount: 1},
			policy.Store{ID: 4, Address: "d:1", State: policy.StoreOffline, LeaderCount: 1}, // PD does not say
		)
		stores, err := c.Stores(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range stores {
			if s.Silent != want[i] {
				t.Errorf("store %d, %s behind the newest heartbeat: silent %t", s.ID, age, s.Silent)
			}
		}
	}
}

func TestStatusAddressesCanBeCalled(t *testing.T) {
	cases := []struct{ status, address, want string }{
		{"192.0.2.9:20180", "192.0.2.46:20160", "192.0.2.9:20180"},
		{"tikv-0.peer:20180", "tikv-0.peer:20160", "tikv-0.peer:20180"},
		{"0.0.0.0:41180", "192.0.2.46:41160", "192.0.2.46:41180"},
		{"[::]:20180", "192.0.2.46:20160", "192.0.2.46:20180"},
		{":20180", "192.0.2.46:20160", "192.0.2.46:20180"},
		{"0.0.0.0:20180", "[2001:db8::1]:20160", "[2001:db8::1]:20180"},
		{"", "192.0.2.46:20160", ""},
		{"192.0.2.46", "192.0.2.46:20160", ""},
		{"192.0.2.46:", "192.0.2.46:20160", ""},
	}
	fake, c := startOne(t)
	var stores []policy.Store
	for i, tc := range cases {
		stores = append(stores, policy.Store{ID: uint64(i), Address: tc.address, StatusAddress: tc.status, State: policy.StoreUp})
	}
	fake.SetStores(stores...)
	got, err := c.Stores(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, tc := range cases {
		if got[i].StatusAddress != tc.want {
			t.Errorf("status %q of %q: got %q, want %q", tc.status, tc.address, got[i].StatusAddress, tc.want)
		}
	}
}

func TestAnEmptyClusterHasNoStores(t *testing.T) {
	fake, c := startOne(t)
	fake.Reply(0, storesPath, http.StatusOK, `{"count":0,"stores":[]}`)
	got, err := c.Stores(t.Context())
	if err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestTheListNeedsNothingButOneRequest(t *testing.T) {
	fake, c := startOne(t)
	fake.Reply(0, storesPath, http.StatusOK, mixedStores) // of stores that GetStore does not know
	got, err := c.Stores(t.Context())
	if err != nil || len(got) != 4 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestASizeThatALivingStoreDoesNotHaveIsAnError(t *testing.T) {
	fake := pdtest.Start(t, 1)
	c := newClient(t, time.Second, fake.URLs()...)
	known := policy.Store{ID: 1, Address: "a:1", State: policy.StoreUp, UsedBytes: 7}
	// As after a change of PD's leader, until the store's next heartbeat.
	fake.SetStores(known, policy.Store{ID: 2, Address: "b:1", State: policy.StoreUp})
	if _, err := c.StoresWithSizes(t.Context()); err == nil || !strings.Contains(err.Error(), "store 2 at b:1") {
		t.Errorf("got %v, want an error that names the store: 0 would make the backup look short", err)
	}

	fake.SetStores(known, policy.Store{ID: 5, UsedBytes: 7})
	fake.Reply(0, storesPath, http.StatusOK, mixedStores) // store 4 is unknown a moment later
	if _, err := c.StoresWithSizes(t.Context()); err == nil || !strings.Contains(err.Error(), "store 4 at 192.0.2.22:20160") {
		t.Errorf("got %v, want an error that names the store", err)
	}
}

func TestASizeThatComesWithTheNextHeartbeatIsWaitedFor(t *testing.T) {
	fake, c := startOne(t)
	s := policy.Store{ID: 1, Address: "a:1", State: policy.StoreUp}
	fake.SetStores(s)
	s.CapacityBytes, s.UsedBytes = 9, 7
	beat := time.AfterFunc(300*time.Millisecond, func() { fake.SetStores(s) })
	defer beat.Stop()
	got, err := c.StoresWithSizes(t.Context())
	if err != nil || got[0].UsedBytes != 7 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestASilentStoreMayHaveNoSize(t *testing.T) {
	fake, c := startOne(t)
	fake.SetStores(policy.Store{ID: 1, Address: "a:1", State: policy.StoreUp, Silent: true})
	got, err := c.StoresWithSizes(t.Context())
	if err != nil || !got[0].Silent || got[0].CapacityBytes != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAThousandStoresAreReadAtOnce(t *testing.T) {
	fake := pdtest.Start(t, 1)
	c := newClient(t, 20*time.Second, fake.URLs()...)
	stores := make([]policy.Store, 1000)
	for i := range stores {
		stores[i] = policy.Store{ID: uint64(i + 1), Address: "a:1", State: policy.StoreUp, CapacityBytes: policy.TiB, UsedBytes: uint64(i)}
	}
	fake.SetStores(stores...)
	began := time.Now()
	got, err := c.StoresWithSizes(t.Context())
	if err != nil || len(got) != 1000 || got[999].UsedBytes != 999 {
		t.Fatalf("got %d stores, %v", len(got), err)
	}
	t.Logf("took %s", time.Since(began))
}
