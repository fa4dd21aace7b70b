package runner

import (
	"fmt"
	"time"
)

// stall tells when an engine has shown no progress for a limit. br prints the
// same figures again while it hangs, and healthy br may be silent for two
// minutes, so only a change of the figures counts.
type stall struct {
	limit   time.Duration
	timer   *time.Timer // nil: no limit
	expired <-chan time.Time
}

func newStall(limit time.Duration) *stall {
	s := &stall{limit: limit}
	if limit > 0 {
		s.timer = time.NewTimer(limit)
		s.expired = s.timer.C
	}
	return s
}

func (s *stall) restart() {
	if s.timer != nil {
		s.timer.Reset(s.limit)
	}
}

func (s *stall) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// standing says where the engine stands, for people.
func (v *view) standing() string {
	if v.last.Total > 0 {
		return fmt.Sprintf("%s at %d of %d", v.last.Step, v.last.Done, v.last.Total)
	}
	return fmt.Sprintf("%s at %.2f %%", v.last.Step, 100*v.last.Ratio)
}
