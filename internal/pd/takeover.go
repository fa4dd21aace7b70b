package pd

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TakeOver ends the holding of the lease that held describes, if it still
// stands, and takes the lease. It is for a caller that knows the holder to be
// dead, such as one that has the lock of the holder's state directory; for
// anybody else it would put two backups on one cluster.
func (c *Client) TakeOver(ctx context.Context, held *HeldError, info LeaseInfo, ttl time.Duration) (*Lease, error) {
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
