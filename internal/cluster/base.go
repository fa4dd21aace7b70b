package cluster

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/brctl/brctl/pkg/policy"
)

// BaseWindow is how long the base load is measured before a plan is made. Longer
// is steadier, but somebody waits, and no window of seconds can speak for the
// hours of a backup: whoever knows the load of those hours sets it
// (policy.Options.BaseLoad).
const BaseWindow = 5 * time.Second

// MeasureBase sets the base load of the hosts of c: what their TiKVs use now,
// as a share of the host's cores, over about window. It is for a moment at which
// no backup runs. Other processes of the host are not seen. A host of unknown
// size, or with a store that does not tell at both ends of the window, stays
// unknown.
//
// read takes a sample of a store, and cores returns the mean number of cores that
// the store has used between two of them, or false when they do not tell.
func MeasureBase[S any](ctx context.Context, c *policy.Cluster, window time.Duration,
	read func(context.Context, policy.Store) (S, error), cores func(before, after S) (float64, bool),
) {
	stores := c.BackupStores()
	before := readAll(ctx, stores, read)
	select {
	case <-ctx.Done():
		return
	case <-time.After(window):
	}
	after := readAll(ctx, stores, read)
	used := make(map[uint64]float64, len(stores))
	for id, b := range before {
		if a, ok := after[id]; ok {
			if v, ok := cores(b, a); ok {
				used[id] = v
			}
		}
	}
	for i := range c.Hosts {
		c.Hosts[i].BaseLoad, c.Hosts[i].BaseKnown = baseOf(c.Hosts[i], stores, used)
	}
}

// baseOf adds up the stores of one host; used is by store id.
func baseOf(h policy.Host, stores []policy.Store, used map[uint64]float64) (load float64, known bool) {
	if h.Cores <= 0 {
		return 0, false
	}
	var sum float64
	for _, s := range stores {
		if s.Host != h.Name {
			continue
		}
		v, ok := used[s.ID]
		if !ok {
			return 0, false
		}
		sum += v
	}
	return min(1, sum/h.Cores), true
}

// readAll samples all stores side by side, by id; one that does not answer is
// absent.
func readAll[S any](ctx context.Context, stores []policy.Store, read func(context.Context, policy.Store) (S, error)) map[uint64]S {
	out := make(map[uint64]S, len(stores))
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(quotaRequests)
	for _, s := range stores {
		g.Go(func() error {
			if v, err := read(ctx, s); err == nil {
				mu.Lock()
				defer mu.Unlock()
				out[s.ID] = v
			}
			return nil
		})
	}
	_ = g.Wait() // the functions return nil
	return out
}
