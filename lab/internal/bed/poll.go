package bed

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errGiveUp ends a poll early: what is awaited will not come.
var errGiveUp = errors.New("give up")

const pollInterval = 100 * time.Millisecond

// poll repeats f until it succeeds, gives up, or the time is over; then the error is f's last.
func poll(ctx context.Context, limit time.Duration, f func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := f()
		if err == nil || errors.Is(err, errGiveUp) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waited %s: %w", limit, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollInterval):
		}
	}
}
