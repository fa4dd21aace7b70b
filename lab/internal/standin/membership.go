package standin

import (
	"context"
	"slices"
	"time"

	"github.com/brctl/brctl/lab/internal/engine"
)

// Join adds a store to the running cluster. It holds nothing: PD moves no regions in a lab.
func (c *Cluster) Join(ctx context.Context, p Place) error {
	s, err := c.add(p)
	if err != nil {
		return err
	}
	if err := s.start(); err != nil {
		return err
	}
	c.cfg.Regions.AddStore(engine.Store{ID: p.ID, Address: p.Address})
	return c.register(ctx, s)
}

// Leave ends a store for good.
func (c *Cluster) Leave(s *Store) {
	s.stop()
	s.machine.do(func(now time.Duration) { s.plant.Stop(now) })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stores = slices.DeleteFunc(c.stores, func(other *Store) bool { return other == s })
}
