package standin

import (
	"context"
	"fmt"
	"time"

	"github.com/brctl/brctl/lab/internal/events"
)

// SetCondition changes the health of the store; anything but Down to Down and back keeps its streams.
func (s *Store) SetCondition(ctx context.Context, want Condition) error {
	switch want {
	case Up, Down, Hung, Slow, NoStatus:
	default:
		return fmt.Errorf("condition %q: want up, down, hung, slow or no-status", want)
	}
	s.mu.Lock()
	was := s.condition
	s.condition = want
	s.notifyLocked()
	s.mu.Unlock()
	e := s.event(events.StoreState)
	e.State = string(want)
	s.record(e)
	return s.transition(ctx, was, want)
}

func (s *Store) transition(ctx context.Context, was, want Condition) error {
	if want == Down {
		s.stop()
		s.machine.do(s.plant.Stop)
		s.cluster.cfg.Regions.SetDown(s.place.ID, true)
		return nil
	}
	s.machine.do(func(now time.Duration) { s.plant.SetPace(now, pace(want)) })
	if was == Down || was == NoStatus || want == NoStatus {
		return s.reopen(ctx)
	}
	return nil
}

func pace(c Condition) float64 {
	switch c {
	case Hung:
		return 0
	case Slow:
		return slowPace
	default:
		return 1
	}
}

// Restart is a crash and a start in a moment: streams are cut, the settings come from the file, the start time is new.
func (s *Store) Restart(ctx context.Context) error {
	e := s.event(events.StoreState)
	e.State = "restarted"
	s.record(e)
	return s.reopen(ctx)
}

func (s *Store) reopen(ctx context.Context) error {
	s.stop()
	s.machine.do(s.plant.Stop)
	if err := s.settings.Reload(); err != nil {
		return err
	}
	s.machine.do(func(now time.Duration) {
		s.plant.Apply(now, plantSettings(s.settings.Backup()))
		s.plant.Start(now)
	})
	s.page.Restart(time.Now())
	if err := s.start(); err != nil {
		return err
	}
	if err := s.cluster.register(ctx, s); err != nil {
		return err
	}
	s.cluster.cfg.Regions.SetDown(s.place.ID, false)
	return nil
}
