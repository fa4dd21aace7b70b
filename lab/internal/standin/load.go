package standin

import (
	"context"
	"fmt"
	"time"
)

// Point is one step of a load to replay: from this second on the host has this business load.
type Point struct {
	Seconds float64 `json:"seconds"`
	Value   float64 `json:"value"`
}

// SetLoad replays a business load on a host, a share of its CPU, in real time from now on. It takes the place of a replay
// that is still going on; the last value stays. All hosts are meant by "all".
func (c *Cluster) SetLoad(ctx context.Context, host string, points []Point) error {
	found := false
	for _, m := range c.machines {
		if host != "all" && host != m.name {
			continue
		}
		found = true
		m.replay(ctx, points)
	}
	if !found {
		return fmt.Errorf("no host %q: want an address like %s, or all", host, c.machines[0].name)
	}
	return nil
}

func (m *machine) replay(ctx context.Context, points []Point) {
	ctx, cancel := context.WithCancel(ctx)
	m.mu.Lock()
	if m.stopReplay != nil {
		m.stopReplay()
	}
	m.stopReplay = cancel
	m.mu.Unlock()
	start := time.Now()
	step := func(p Point) { m.do(func(now time.Duration) { m.plant.SetBase(now, p.Value) }) }
	for len(points) > 0 && points[0].Seconds <= 0 {
		step(points[0])
		points = points[1:]
	}
	go func() {
		defer cancel()
		for _, p := range points {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Until(start.Add(time.Duration(p.Seconds * float64(time.Second))))):
				step(p)
			}
		}
	}()
}
