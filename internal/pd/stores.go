package pd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/pingcap/kvproto/pkg/pdpb"
	pdclient "github.com/tikv/pd/client"
	"golang.org/x/sync/errgroup"

	"github.com/brctl/brctl/pkg/policy"
)

const (
	// disconnectAfter is PD's own limit (storeDisconnectDuration): a store
	// whose last heartbeat is older is shown as Disconnected. Stores report
	// every 10 s.
	disconnectAfter = 20 * time.Second

	// storeRequests is how many GetStore requests run at a time: enough for
	// 1,000 stores in well under a second, few enough not to be felt by PD.
	storeRequests = 16
)

// PD's numbers for metapb.StoreState; zero (Up) is left out of its JSON.
const (
	wireUp        = 0
	wireOffline   = 1
	wireTombstone = 2
)

// errNoStats: no disk has a capacity of 0, PD's answer before the first heartbeat.
var errNoStats = errors.New("pd has no statistics of it: no heartbeat since pd's leader changed")

// storesPath asks for all states: PD leaves tombstones out unless told so.
const storesPath = "/pd/api/v1/stores?state=0&state=1&state=2"

// storeList is the part that we read of PD's store list. Sizes are missing on
// purpose: PD prints them rounded ("7.163TiB").
type storeList struct {
	Stores []struct {
		Store struct {
			ID            uint64      `json:"id"`
			Address       string      `json:"address"`
			Labels        []wireLabel `json:"labels"`
			Version       string      `json:"version"`
			StatusAddress string      `json:"status_address"`
			State         int         `json:"state"`
			StateName     string      `json:"state_name"`
			LastHeartbeat int64       `json:"last_heartbeat"`  // Unix nanoseconds, of PD's clock
			StartedAt     int64       `json:"start_timestamp"` // Unix seconds, of the store's clock
		} `json:"store"`
		Status struct {
			LeaderCount int `json:"leader_count"`
			RegionCount int `json:"region_count"`
		} `json:"status"`
	} `json:"stores"`
}

type wireLabel struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Stores returns every store that PD remembers, tombstones included, by id,
// without sizes: one request, whatever the size of the cluster.
//
// Silent is judged by PD's clock, not ours: it is PD's word (Disconnected,
// Down) for stores that are Up, and for all the age of the last heartbeat, since
// PD goes on calling a dead store Offline while it is being scaled in. The
// newest heartbeat of the list stands for PD's now: stores report every 10 s, so
// it lags by that much at most while any store lives, and where none does, PD's
// word is left. For some seconds after PD's leader has changed, a living store
// may look silent: the new leader knows only the last heartbeat that was
// persisted.
func (c *Client) Stores(ctx context.Context) ([]policy.Store, error) {
	var list storeList
	if err := c.get(ctx, storesPath, &list); err != nil {
		return nil, fmt.Errorf("read stores: %w", err)
	}
	stores, err := list.stores()
	if err != nil {
		return nil, fmt.Errorf("read stores: %w", err)
	}
	return stores, nil
}

// StoresWithSizes is Stores with the sizes of the stores that br will ask for
// data, one request more for each of them. A plan stands on the sum of these
// sizes, so a size that a living store does not have within Config.Timeout is an
// error. Only a silent store may be left without (all sizes 0): PD forgets
// what a store said when PD's leader changes, and this one will not say it
// again.
func (c *Client) StoresWithSizes(ctx context.Context) ([]policy.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	stores, err := c.Stores(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.readSizes(ctx, stores); err != nil {
		return nil, fmt.Errorf("read store sizes: %w", err)
	}
	return stores, nil
}

func (l storeList) stores() ([]policy.Store, error) {
	now := l.newestHeartbeat()
	out := make([]policy.Store, 0, len(l.Stores))
	for _, w := range l.Stores {
		state, err := storeState(w.Store.State)
		if err != nil {
			return nil, fmt.Errorf("store %d: %w", w.Store.ID, err)
		}
		s := policy.Store{
			ID:            w.Store.ID,
			Address:       w.Store.Address,
			StatusAddress: reachableStatusAddress(w.Store.StatusAddress, w.Store.Address),
			Host:          policy.HostOf(w.Store.Address),
			Version:       w.Store.Version,
			State:         state,
			Labels:        labels(w.Store.Labels),
			LastHeartbeat: unixNano(w.Store.LastHeartbeat),
			StartedAt:     unixSeconds(w.Store.StartedAt),
			LeaderCount:   w.Status.LeaderCount,
			RegionCount:   w.Status.RegionCount,
		}
		s.TiFlash = isTiFlash(s.Labels)
		s.Silent = silent(w.Store.StateName, s.LastHeartbeat, now)
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b policy.Store) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

func (l storeList) newestHeartbeat() time.Time {
	var newest int64
	for _, w := range l.Stores {
		newest = max(newest, w.Store.LastHeartbeat)
	}
	return unixNano(newest)
}

func storeState(state int) (policy.StoreState, error) {
	switch state {
	case wireUp:
		return policy.StoreUp, nil
	case wireOffline:
		return policy.StoreOffline, nil
	case wireTombstone:
		return policy.StoreTombstone, nil
	}
	return "", fmt.Errorf("unknown state %d", state)
}

// silent judges a heartbeat of time zero (PD did not say) by PD's word alone.
func silent(stateName string, heartbeat, now time.Time) bool {
	if stateName == "Disconnected" || stateName == "Down" {
		return true
	}
	return !heartbeat.IsZero() && now.Sub(heartbeat) > disconnectAfter
}

// isTiFlash: a TiFlash store differs from a TiKV by this label only. In
// disaggregated clusters its compute nodes say tiflash_compute.
func isTiFlash(labels map[string]string) bool {
	return labels["engine"] == "tiflash" || labels["engine"] == "tiflash_compute"
}

// reachableStatusAddress repairs an address that a store listens on but nobody
// can call: an unspecified host (0.0.0.0, [::], none) becomes the host of the
// store's address. Without the repair, 0.0.0.0 would even work on a TiKV host,
// and give one store's figures for all. It returns "" when the store has none.
func reachableStatusAddress(status, address string) string {
	host, port, err := net.SplitHostPort(status)
	if err != nil || port == "" {
		return ""
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		return net.JoinHostPort(policy.HostOf(address), port)
	}
	return status
}

// readSizes fills in the sizes of the stores that br will ask.
func (c *Client) readSizes(ctx context.Context, stores []policy.Store) error {
	id, err := c.ClusterID(ctx)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(storeRequests)
	for i := range stores {
		if stores[i].BackedUp() {
			g.Go(func() error { return c.readSize(ctx, id, &stores[i]) })
		}
	}
	return g.Wait()
}

// readSize waits for a living store's next heartbeat where PD has none yet.
func (c *Client) readSize(ctx context.Context, clusterID uint64, s *policy.Store) error {
	for {
		stats, err := c.storeStats(ctx, clusterID, s.ID)
		if err != nil {
			return fmt.Errorf("store %d at %s: %w", s.ID, s.Address, err)
		}
		s.CapacityBytes, s.AvailableBytes, s.UsedBytes = stats.GetCapacity(), stats.GetAvailable(), stats.GetUsedSize()
		if s.CapacityBytes > 0 || s.UsedBytes > 0 || s.Silent {
			return nil
		}
		if !pause(ctx) {
			return fmt.Errorf("store %d at %s: %w", s.ID, s.Address, errNoStats)
		}
	}
}

// storeStats asks the leader directly, since the official client's GetStore
// drops the statistics.
func (c *Client) storeStats(ctx context.Context, clusterID, storeID uint64) (stats *pdpb.StoreStats, err error) {
	request := &pdpb.GetStoreRequest{Header: &pdpb.RequestHeader{ClusterId: clusterID}, StoreId: storeID}
	err = c.call(ctx, func(ctx context.Context, conn pdclient.Client) error {
		leader := conn.GetServiceDiscovery().GetServingEndpointClientConn()
		if leader == nil {
			return errNoLeader
		}
		resp, err := pdpb.NewPDClient(leader).GetStore(ctx, request)
		if err != nil {
			return err
		}
		stats = resp.GetStats()
		return headerError(resp.GetHeader())
	})
	return stats, err
}

func labels(wire []wireLabel) map[string]string {
	if len(wire) == 0 {
		return nil
	}
	out := make(map[string]string, len(wire))
	for _, l := range wire {
		out[l.Key] = l.Value
	}
	return out
}

func unixNano(n int64) time.Time {
	if n <= 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func unixSeconds(n int64) time.Time {
	if n <= 0 {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}
