package gcwatch

import (
	"context"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// source is PD, as far as a Watcher needs it. Any error counts as one failed
// poll, whatever its kind.
type source interface {
	SafePoints(ctx context.Context) (policy.SafePoints, error)
	TSO(ctx context.Context) (policy.TS, error) // PD's clock
}

// The usual rhythm of a Watcher.
const (
	DefaultInterval  = 10 * time.Second
	DefaultTolerance = 5 * time.Minute
)

// Config is how a Watcher works. Its zero values mean the defaults.
type Config struct {
	Interval time.Duration // between two polls
	// Tolerance is how long PD may be without any answer before that is
	// reported. An election takes seconds, an upgrade a minute or two.
	Tolerance time.Duration
	// Self returns the service ids recorded by our runs; nil means none.
	Self func() []string
}

// Report is what a Watcher has to say.
type Report struct {
	View   View // the last that was read; the zero View before the first
	Errors int  // failed polls since Run began
	// Gone says that PD has not answered for the tolerance; Silence is how
	// long, and Err the last poll's error.
	Gone    bool
	Silence time.Duration
	Err     error
}

// Watcher polls PD's safepoints.
type Watcher struct {
	pd     source
	config Config
	report func(Report)
}

// NewWatcher returns a Watcher that calls report, from the goroutine of Run,
// after every poll that succeeded, and once when PD has been gone for longer
// than the tolerance. A single failed poll is only counted.
func NewWatcher(pd source, config Config, report func(Report)) *Watcher {
	if config.Interval <= 0 {
		config.Interval = DefaultInterval
	}
	if config.Tolerance <= 0 {
		config.Tolerance = DefaultTolerance
	}
	if config.Self == nil {
		config.Self = func() []string { return nil }
	}
	return &Watcher{pd: pd, config: config, report: report}
}

// Run polls until ctx ends, and returns why it ended.
func (w *Watcher) Run(ctx context.Context) error {
	ticker := time.NewTicker(w.config.Interval)
	defer ticker.Stop()
	var last Report
	answered := time.Now()
	for {
		view, err := w.poll(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			answered = time.Now()
			last = Report{View: view, Errors: last.Errors}
			w.report(last)
		default:
			last.Errors++
			last.Err, last.Silence = err, time.Since(answered)
			if !last.Gone && last.Silence >= w.config.Tolerance {
				last.Gone = true
				w.report(last)
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// poll takes at most one interval.
func (w *Watcher) poll(ctx context.Context) (View, error) {
	ctx, cancel := context.WithTimeout(ctx, w.config.Interval)
	defer cancel()
	sp, err := w.pd.SafePoints(ctx)
	if err != nil {
		return View{}, err
	}
	now, err := w.pd.TSO(ctx)
	if err != nil {
		return View{}, err
	}
	return Analyse(sp, now.Time(), w.config.Self()), nil
}
