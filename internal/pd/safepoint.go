package pd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	pdclient "github.com/tikv/pd/client"

	"github.com/brctl/brctl/pkg/policy"
)

// gcWorkerID is the service id of TiDB's own GC; it is not ours to touch.
const gcWorkerID = "gc_worker"

// SafePoints returns PD's GC safepoint and every service safepoint, as PD lists
// them: some versions of PD list expired ones too. Numbers are exact to the
// last bit; MaxUint64 and MaxInt64 occur and mean "no limit" and "never".
func (c *Client) SafePoints(ctx context.Context) (policy.SafePoints, error) {
	var body struct {
		GC         *policy.TS                `json:"gc_safe_point"`
		MinService policy.TS                 `json:"min_service_gc_safe_point"` // left out when 0, and by older PD
		Services   []policy.ServiceSafePoint `json:"service_gc_safe_points"`    // null when there are none
	}
	if err := c.get(ctx, "/pd/api/v1/gc/safepoint", &body); err != nil {
		return policy.SafePoints{}, fmt.Errorf("read safepoints: %w", err)
	}
	if body.GC == nil {
		return policy.SafePoints{}, errors.New("read safepoints: answer has no gc_safe_point")
	}
	return policy.SafePoints{GC: *body.GC, MinService: body.MinService, Services: body.Services}, nil
}

// SafePointBehindError says that PD did not store a service safepoint because
// something newer is allowed to be deleted already.
type SafePointBehindError struct {
	ServiceID string
	SafePoint policy.TS // what was asked for
	Minimum   policy.TS // the oldest that PD still grants
}

func (e *SafePointBehindError) Error() string {
	return fmt.Sprintf("service safepoint %s of %s is behind the minimum %s", e.SafePoint, e.ServiceID, e.Minimum)
}

// SetServiceSafePoint makes PD keep everything newer than safePoint for ttl,
// under the service id. PD answers a safepoint that comes too late without an
// error; here that is a *SafePointBehindError.
func (c *Client) SetServiceSafePoint(ctx context.Context, id string, ttl time.Duration, safePoint policy.TS) error {
	if ttl < time.Second {
		return fmt.Errorf("set service safepoint of %s: ttl %s is under a second", id, ttl)
	}
	minimum, err := c.updateServiceSafePoint(ctx, id, int64(ttl/time.Second), safePoint)
	if err != nil {
		return fmt.Errorf("set service safepoint of %s: %w", id, err)
	}
	if minimum > safePoint {
		return &SafePointBehindError{ServiceID: id, SafePoint: safePoint, Minimum: minimum}
	}
	return nil
}

// RemoveServiceSafePoint ends a service's hold on GC. Removing one that does
// not exist is no error. It is for ids that the caller owns; PD does not check.
func (c *Client) RemoveServiceSafePoint(ctx context.Context, id string) error {
	if _, err := c.updateServiceSafePoint(ctx, id, 0, math.MaxUint64); err != nil {
		return fmt.Errorf("remove service safepoint of %s: %w", id, err)
	}
	return nil
}

// updateServiceSafePoint returns the minimum over all services. A ttl of 0
// removes.
func (c *Client) updateServiceSafePoint(ctx context.Context, id string, ttlSeconds int64, safePoint policy.TS) (minimum policy.TS, err error) {
	if id == "" || id == gcWorkerID {
		return 0, fmt.Errorf("service id %q is not ours", id)
	}
	err = c.call(ctx, func(ctx context.Context, conn pdclient.Client) error {
		v, err := conn.UpdateServiceGCSafePoint(ctx, id, ttlSeconds, uint64(safePoint))
		minimum = policy.TS(v)
		return err
	})
	return minimum, err
}
