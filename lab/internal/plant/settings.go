package plant

import (
	"math"
	"time"
)

// Settings are the online items of TiKV's [backup] section that shape a backup.
// Each field says when TiKV reads it, because that moment is the whole point of
// this package.
type Settings struct {
	// NumThreads is backup.num-threads. A request reads it once, when it arrives
	// (worker loops, pool size); the keeper reads it at each tick.
	NumThreads int
	// BatchSize is backup.batch-size: how many regions a worker takes per permit.
	// Read once per request, when it arrives.
	BatchSize int
	// Refresh is backup.auto-tune-refresh-interval. The keeper reads it each time
	// it goes to sleep, so a change counts only after the sleep under way.
	Refresh time.Duration
	// AutoTune is backup.enable-auto-tune. Off, the keeper still runs and applies
	// NumThreads at each tick.
	AutoTune bool
	// RemainThreads is backup.auto-tune-remain-threads: cores that auto-tune leaves
	// alone. Read at each tick.
	RemainThreads int
}

const (
	defaultBatchSize = 8
	defaultRefresh   = 60 * time.Second
	// minRefresh keeps a refresh interval of zero, which TiKV accepts and spins
	// on, from making simulated time stand still.
	minRefresh = time.Millisecond
)

// DefaultSettings are TiKV's own defaults on an instance limited to cores.
func DefaultSettings(cores float64) Settings {
	return Settings{
		NumThreads:    defaultNumThreads(cores),
		BatchSize:     defaultBatchSize,
		Refresh:       defaultRefresh,
		AutoTune:      true,
		RemainThreads: int(math.Round(cores * 0.2)),
	}
}

func defaultNumThreads(cores float64) int {
	return int(min(max(cores*0.5, 1), 8))
}

// Effective returns what TiKV makes of the settings on an instance limited to
// cores: an out-of-range num-threads or batch-size is neither refused nor
// clamped but silently replaced by its default.
func (s Settings) Effective(cores float64) Settings {
	if s.NumThreads < 1 || s.NumThreads > int(cores) {
		s.NumThreads = defaultNumThreads(cores)
	}
	if s.BatchSize < 1 {
		s.BatchSize = defaultBatchSize
	}
	return s
}
