package standin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/brctl/brctl/lab/internal/shape"
)

// Point is one step of a load to replay: from this second on the host has this business load.
type Point struct {
	Seconds float64 `json:"seconds"`
	Value   float64 `json:"value"`
}

// SetLoad replays a business load on a host, a share of its CPU, in real time from now on. It takes the place of a replay
// that is still going on; the last value stays. All hosts are meant by "all".
func (c *Cluster) SetLoad(ctx context.Context, host string, points []Point) error {
	if err := checkPoints(points); err != nil {
		return err
	}
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

// checkPoints wants at least one point, in order of time, with values as the flag --load has them.
func checkPoints(points []Point) error {
	if len(points) == 0 {
		return errors.New("load: want at least one point")
	}
	last := 0.0
	for i, p := range points {
		if !(p.Seconds >= last) { // NaN is refused too
			return fmt.Errorf("load: point %d: got second %g after %g, want them in order from 0 on", i+1, p.Seconds, last)
		}
		if err := shape.CheckLoad(p.Value); err != nil {
			return fmt.Errorf("load: point %d: %w", i+1, err)
		}
		last = p.Seconds
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
	step := func(p Point) {
		m.do(func(now time.Duration) {
			if ctx.Err() == nil { // it is cancelled under the lock that do holds
				m.plant.SetBase(now, p.Value)
			}
		})
	}
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
