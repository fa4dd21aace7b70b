package gcwatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrNotOurs means that a service safepoint is not recorded as ours.
var ErrNotOurs = errors.New("service safepoint is not ours")

// remover ends a service's hold on GC; that it does not exist is no error.
type remover interface {
	RemoveServiceSafePoint(ctx context.Context, id string) error
}

// Release ends the hold of one of our backups, which br leaves behind for a next
// attempt that will not come. self are the ids recorded by our runs: any other
// is refused with ErrNotOurs.
func Release(ctx context.Context, pd remover, self []string, id string) error {
	if !slices.Contains(self, id) || id == gcWorkerID {
		return fmt.Errorf("release %q: %w", id, ErrNotOurs)
	}
	return pd.RemoveServiceSafePoint(ctx, id)
}
