package bed

import (
	"context"
	"fmt"
	"time"

	"github.com/tikv/client-go/v2/oracle"
)

// tsTimeout is for one timestamp; PD's client waits for a leader as long as it is let.
const tsTimeout = 5 * time.Second

// MoveGCSafePoint moves PD's GC safepoint, as TiDB's GC does; 0 means now. It returns where the safepoint is then. PD
// never moves it back, and answers such a request with success; here that is an error.
func (b *Bed) MoveGCSafePoint(ctx context.Context, ts uint64) (uint64, error) {
	ts, err := b.orNow(ctx, ts)
	if err != nil {
		return 0, err
	}
	is, err := b.pd.UpdateGCSafePoint(ctx, ts)
	if err != nil {
		return 0, fmt.Errorf("update GC safepoint: %w", err)
	}
	if is != ts {
		return 0, fmt.Errorf("update GC safepoint: it is at %d and cannot go back to %d", is, ts)
	}
	return is, nil
}

// SetServiceSafePoint adds a service safepoint to PD for ttl seconds, or removes it with a ttl of 0 or less; a ts of 0
// means now. It returns the smallest of all. PD takes none below that, and answers such a request with success; here
// that is an error.
func (b *Bed) SetServiceSafePoint(ctx context.Context, id string, ttl int64, ts uint64) (uint64, error) {
	ts, err := b.orNow(ctx, ts)
	if err != nil {
		return 0, err
	}
	smallest, err := b.pd.UpdateServiceGCSafePoint(ctx, id, ttl, ts)
	if err != nil {
		return 0, fmt.Errorf("update service safepoint: %w", err)
	}
	if ttl > 0 && smallest > ts {
		return 0, fmt.Errorf("update service safepoint: PD takes none below the smallest, %d; got %d", smallest, ts)
	}
	return smallest, nil
}

func (b *Bed) orNow(ctx context.Context, ts uint64) (uint64, error) {
	if ts != 0 {
		return ts, nil
	}
	return b.timestamp(ctx)
}

// timestamp is PD's present time.
func (b *Bed) timestamp(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, tsTimeout)
	defer cancel()
	physical, logical, err := b.pd.GetTS(ctx)
	if err != nil {
		return 0, fmt.Errorf("get timestamp: %w", err)
	}
	return oracle.ComposeTS(physical, logical), nil
}
