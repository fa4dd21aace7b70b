package pd

import (
	"context"
	"errors"
	"fmt"

	"github.com/pingcap/kvproto/pkg/pdpb"
	pdclient "github.com/tikv/pd/client"

	"github.com/brctl/brctl/pkg/policy"
)

// errNoLeader is worded as PD's own error is, so that it is retried the same
// way.
var errNoLeader = errors.New("no leader")

// ClusterID returns the id that PD gave the cluster when it was bootstrapped.
func (c *Client) ClusterID(ctx context.Context) (id uint64, err error) {
	err = c.call(ctx, func(ctx context.Context, conn pdclient.Client) error {
		id = conn.GetClusterID(ctx)
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("read cluster id: %w", err)
	}
	return id, nil
}

// ClusterVersion returns the version that the cluster works as, for example
// "8.5.0": the lowest version of its stores.
func (c *Client) ClusterVersion(ctx context.Context) (string, error) {
	var version string
	if err := c.get(ctx, "/pd/api/v1/config/cluster-version", &version); err != nil {
		return "", fmt.Errorf("read cluster version: %w", err)
	}
	return version, nil
}

// MaxReplicas returns PD's replication.max-replicas. Placement rules may keep
// other numbers for parts of the data.
func (c *Client) MaxReplicas(ctx context.Context) (int, error) {
	var config struct {
		MaxReplicas int `json:"max-replicas"`
	}
	if err := c.get(ctx, "/pd/api/v1/config/replicate", &config); err != nil {
		return 0, fmt.Errorf("read max-replicas: %w", err)
	}
	if config.MaxReplicas < 1 {
		return 0, fmt.Errorf("read max-replicas: pd says %d", config.MaxReplicas)
	}
	return config.MaxReplicas, nil
}

// TSO takes one timestamp from PD's oracle. Its physical part is the only clock
// on which all of a cluster agrees.
func (c *Client) TSO(ctx context.Context) (ts policy.TS, err error) {
	err = c.call(ctx, func(ctx context.Context, conn pdclient.Client) error {
		physical, logical, err := conn.GetTS(ctx)
		ts = policy.ComposeTS(physical, logical)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read timestamp: %w", err)
	}
	return ts, nil
}

// headerError turns the error that PD puts into a response's header into ours.
func headerError(h *pdpb.ResponseHeader) error {
	e := h.GetError()
	if e == nil {
		return nil
	}
	return fmt.Errorf("%s (%s)", e.GetMessage(), e.GetType())
}
