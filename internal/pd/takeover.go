package pd

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TakeOver ends the holding of the lease that held describes, if it still
// stands, and takes the lease. The caller must have the lock of the state
// directory that info names. That proves a holder from the same directory dead,
// and nothing about any other: where StateID or the host differs (a cloned
// machine has the StateID of its original), or StateID is empty on either side,
// TakeOver touches nothing and returns held in its error, as Acquire does.
func (c *Client) TakeOver(ctx context.Context, held *HeldError, info LeaseInfo, ttl time.Duration) (*Lease, error) {
	if info.StateID == "" || held.Info.StateID != info.StateID || held.Info.Owner != info.Owner {
		return nil, fmt.Errorf("take lease over: %w", held)
	}
	etcd, err := c.etcdClient(ctx)
	if err != nil {
		return nil, fmt.Errorf("take lease over: %w", err)
	}
	deleting, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	_, err = etcd.Txn(deleting).
		If(clientv3.Compare(clientv3.CreateRevision(held.Key), "=", held.Rev)).
		Then(clientv3.OpDelete(held.Key)).
		Commit()
	if err != nil {
		return nil, fmt.Errorf("take lease over: delete %s: %w", held.Key, err)
	}
	return c.Acquire(ctx, info, ttl)
}
