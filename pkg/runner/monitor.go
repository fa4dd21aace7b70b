package runner

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// report is one look at the cluster while the engine works. What could not be
// read is absent.
type report struct {
	err        error // a panic while looking; nothing else is set then
	at         time.Time
	stores     []policy.Store // nil: PD did not answer
	gauges     map[uint64]Gauge
	safePoints policy.SafePoints
	pdNow      time.Time // zero: PD did not tell its safepoints
}

// monitor looks at the cluster again and again until ctx ends. One look that
// fails is no news: PD changes leaders, ports restart.
func (r *Runner) monitor(ctx context.Context, out chan<- report) {
	ticker := time.NewTicker(r.req.MonitorEvery)
	defer ticker.Stop()
	for {
		var rep report
		if err := guarded(func() error { rep = r.look(ctx); return nil }); err != nil {
			rep = report{err: err}
		}
		select {
		case <-ctx.Done():
			return
		case out <- rep:
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (r *Runner) look(ctx context.Context) report {
	rep := report{at: r.deps.Now()}
	stores, err := r.deps.Topology.Stores(ctx)
	if err == nil {
		rep.stores = stores
	}
	if sp, now, err := r.deps.SafePoints.SafePoints(ctx); err == nil {
		rep.safePoints, rep.pdNow = sp, now
	}
	watched := policy.Cluster{Stores: rep.stores}.BackupStores()
	if len(watched) == 0 {
		watched = r.cluster.BackupStores()
	}
	rep.gauges = r.gauges(ctx, watched)
	return rep
}

// maxScrapes bounds how many status ports are read at a time.
const maxScrapes = 32

// gauges reads all stores side by side. A store that cannot be read is absent.
// A panic of one read becomes a panic of the caller, who is guarded.
func (r *Runner) gauges(ctx context.Context, stores []policy.Store) map[uint64]Gauge {
	out := make(map[uint64]Gauge, len(stores))
	var mu sync.Mutex
	var panicked error
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxScrapes)
	for _, s := range stores {
		if s.StatusAddress == "" {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			var g Gauge
			err := guarded(func() (err error) { g, err = r.deps.Gauges.Gauge(ctx, s); return err })
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				out[s.ID] = g
			} else if _, ok := errors.AsType[*panicError](err); ok {
				panicked = err
			}
		})
	}
	wg.Wait()
	if panicked != nil {
		panic(panicked)
	}
	return out
}
