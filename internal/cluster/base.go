package cluster

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/brctl/brctl/pkg/policy"
)

// BaseWindow is how long the base load is measured: thread CPU is counted in
// hundredths of a second, so that two seconds tell it to a percent of a core.
const BaseWindow = 2 * time.Second

// MeasureBase sets the base load of the hosts of c: what their TiKVs use now,
// as a share of the host's cores. It is for a moment at which no backup runs.
// Other processes of the host are not seen. A host of unknown size, or with a
// store that does not answer at both ends of the window, stays unknown.
//
// cpu returns the CPU seconds that a store's threads have used since they
// started.
func MeasureBase(ctx context.Context, c *policy.Cluster, cpu func(context.Context, policy.Store) (float64, error)) {
	stores := c.BackupStores()
	began := time.Now()
	before := readCPU(ctx, stores, cpu)
	select {
	case <-ctx.Done():
		return
	case <-time.After(BaseWindow):
	}
	seconds := time.Since(began).Seconds()
	after := readCPU(ctx, stores, cpu)
	for i := range c.Hosts {
		c.Hosts[i].BaseLoad, c.Hosts[i].BaseKnown = baseOf(c.Hosts[i], stores, before, after, seconds)
	}
}

// baseOf adds up the stores of one host.
func baseOf(h policy.Host, stores []policy.Store, before, after map[uint64]float64, seconds float64) (load float64, known bool) {
	if h.Cores <= 0 {
		return 0, false
	}
	var used float64
	for _, s := range stores {
		if s.Host != h.Name {
			continue
		}
		a, okA := before[s.ID]
		b, okB := after[s.ID]
		if !okA || !okB || b < a {
			return 0, false
		}
		used += (b - a) / seconds
	}
	return min(1, used/h.Cores), true
}

// readCPU asks all stores side by side; one that does not answer is absent.
func readCPU(ctx context.Context, stores []policy.Store, cpu func(context.Context, policy.Store) (float64, error)) map[uint64]float64 {
	out := make(map[uint64]float64, len(stores))
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(quotaRequests)
	for _, s := range stores {
		g.Go(func() error {
			if v, err := cpu(ctx, s); err == nil {
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
