package pd

import (
	"context"
	"errors"
	"fmt"
	"math"

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

// RemoveServiceSafePoint ends a service's hold on GC. Removing one that does
// not exist is no error. It is for ids that the caller owns; PD does not check.
func (c *Client) RemoveServiceSafePoint(ctx context.Context, id string) error {
	if id == "" || id == gcWorkerID {
		return fmt.Errorf("remove service safepoint: id %q is not ours", id)
	}
	err := c.call(ctx, func(ctx context.Context, conn pdclient.Client) error {
		_, err := conn.UpdateServiceGCSafePoint(ctx, id, 0, math.MaxUint64) // a ttl of 0 removes
		return err
	})
	if err != nil {
		return fmt.Errorf("remove service safepoint of %s: %w", id, err)
	}
	return nil
}
