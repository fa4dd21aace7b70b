package gcwatch

import (
	"context"
	"fmt"
	"regexp"
)

// brBackupID is the form of the service ids that br makes up for one backup or
// restore of its own: "br-" and a random UUID. All other ids are shared:
// gc_worker is TiDB's own GC, native_br is every br on a PD with GC barriers.
var brBackupID = regexp.MustCompile(`^br-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// remover ends a service's hold on GC; that it does not exist is no error.
type remover interface {
	RemoveServiceSafePoint(ctx context.Context, id string) error
}

// Release ends the hold on GC of one backup that is given up: br leaves it
// behind for a next attempt that will not come. The caller has the id from a br
// that it has started itself; an id that cannot belong to a single br is refused
// whatever the caller believes.
func Release(ctx context.Context, pd remover, id string) error {
	if !brBackupID.MatchString(id) {
		return fmt.Errorf("release service safepoint %q: not the id of one backup by br", id)
	}
	return pd.RemoveServiceSafePoint(ctx, id)
}
