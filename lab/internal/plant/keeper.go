package plant

import (
	"math"
	"time"
)

// keeper is the loop that moves the soft limit: compute a target, resize,
// sleep, again.
type keeper struct {
	due time.Duration // next tick, unless shrinking
	// shrinking: it queues for the permits that it has to take away and does
	// nothing else until it has them, whatever the settings say meanwhile.
	shrinking bool
	target    int

	since    time.Duration // last tick that auto-tuned, or the start
	business float64       // CPU of other threads by then, nanoseconds
}

// tick starts a resize. Growing is immediate; shrinking waits in the FIFO
// behind every worker that already queues.
func (s *Store) tick(now time.Duration) {
	k := &s.keeper
	k.target = s.target(now)
	if k.target < s.softLimit {
		k.shrinking = true
		s.permits.wait(waiter{need: s.softLimit - k.target})
		return
	}
	s.permits.release(k.target - s.softLimit)
	s.resized(now)
}

// resized ends a resize: only now does the gauge change and the sleep begin.
func (s *Store) resized(now time.Duration) {
	k := &s.keeper
	s.softLimit = k.target
	k.shrinking = false
	k.due = now + max(s.settings.Refresh, minRefresh)
}

// target is the soft limit that the keeper wants.
func (s *Store) target(now time.Duration) int {
	if !s.settings.AutoTune {
		return s.settings.NumThreads
	}
	quota := max(int(s.cores()-s.usedByOthers(now))-s.settings.RemainThreads, 1)
	return min(quota, s.settings.NumThreads)
}

// usedByOthers is the CPU, in cores, that the process's other threads used on
// average since it last asked, cut to whole percent as TiKV does (there per
// thread name). At the first tick no time has passed, so it is 0 and auto-tune
// starts as if the instance were idle. Other processes are invisible to it.
func (s *Store) usedByOthers(now time.Duration) float64 {
	k := &s.keeper
	elapsed := float64(now - k.since)
	other := s.business + s.ioCPU
	used := 0.0
	if elapsed > 0 {
		used = math.Floor((other-k.business)/elapsed*100+roundingSlack) / 100
	}
	k.since, k.business = now, other
	return used
}

// roundingSlack keeps a load of exactly n percent from being cut to n-1.
const roundingSlack = 1e-6
