package pd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

const (
	// DefaultLeaseTTL is how long the lease outlives a holder that died without
	// releasing it: for that time nobody else can start a backup.
	DefaultLeaseTTL = 30 * time.Second

	minLeaseTTL = time.Second

	// leaseParts is how many renewals are tried per TTL. The holder gives up
	// one part before the lease can end, which is its time to stop working.
	leaseParts = 6
)

// ErrLeaseLost means that the lease is, or may soon be, somebody else's.
var ErrLeaseLost = errors.New("lease lost")

// Lease is the right to work on a cluster, kept in PD's etcd under
// /brctl/<cluster id>/lease and renewed in the background until Release.
//
// It is lost when PD cannot be reached for nearly its TTL, when an operator
// deletes the key, or when the process was suspended for longer than the TTL.
// Done tells of the first two. The third is noticed late by nature, so call
// Check before an effect that must not happen twice.
type Lease struct {
	etcd     *clientv3.Client
	id       clientv3.LeaseID
	key      string
	revision int64
	ttl      time.Duration
	timeout  time.Duration

	cancel context.CancelFunc // ends the renewals
	joined sync.WaitGroup
	once   sync.Once
	done   chan struct{}
	err    error // set before done is closed
}

// Acquire takes the lease of the cluster, for ttl (0: DefaultLeaseTTL) at a
// time. It never waits for a holder: a lease that is held is a *HeldError. The
// caller must Release the lease.
func (c *Client) Acquire(ctx context.Context, info LeaseInfo, ttl time.Duration) (*Lease, error) {
	if ttl == 0 {
		ttl = DefaultLeaseTTL
	}
	if ttl < minLeaseTTL {
		return nil, fmt.Errorf("acquire lease: ttl %s is under %s", ttl, minLeaseTTL)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	clusterID, err := c.ClusterID(ctx)
	if err != nil {
		return nil, fmt.Errorf("acquire lease: %w", err)
	}
	etcd, err := c.etcdClient(ctx)
	if err != nil {
		return nil, fmt.Errorf("acquire lease: %w", err)
	}
	l := &Lease{
		etcd:    etcd,
		key:     fmt.Sprintf("/brctl/%d/lease", clusterID),
		timeout: c.timeout,
		done:    make(chan struct{}),
	}
	if err := l.acquire(ctx, info, ttl); err != nil {
		return nil, fmt.Errorf("acquire lease: %w", err)
	}
	return l, nil
}

// etcdClient returns the etcd client, which is made on first use and connects
// in the background.
func (c *Client) etcdClient(ctx context.Context) (*clientv3.Client, error) {
	if err := c.lock(ctx); err != nil {
		return nil, err
	}
	defer c.unlock()
	if c.etcd != nil {
		return c.etcd, nil
	}
	etcd, err := clientv3.New(clientv3.Config{
		Endpoints:            c.endpoints,
		TLS:                  c.tls,
		DialTimeout:          c.timeout,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		DialOptions:          []grpc.DialOption{grpc.WithNoProxy()},
		Logger:               zap.NewNop(), // the default writes to stderr
	})
	if err != nil {
		return nil, fmt.Errorf("make etcd client: %w", err)
	}
	c.etcd = etcd
	return etcd, nil
}

// acquire creates the key under a new etcd lease unless the key exists. After
// an error the etcd lease is revoked: the key may have been created by a
// request whose answer was lost.
func (l *Lease) acquire(ctx context.Context, info LeaseInfo, ttl time.Duration) error {
	value, err := json.Marshal(info)
	if err != nil {
		return fmt.Errorf("encode lease info: %w", err)
	}
	asked := time.Now()
	grant, err := l.etcd.Grant(ctx, int64(math.Ceil(ttl.Seconds())))
	if err != nil {
		return fmt.Errorf("ask etcd for a lease: %w", err)
	}
	l.id, l.ttl = grant.ID, time.Duration(grant.TTL)*time.Second
	if err := l.create(ctx, string(value)); err != nil {
		return errors.Join(err, l.revoke(context.WithoutCancel(ctx)))
	}
	var keeping context.Context
	keeping, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l.joined.Go(func() { l.keep(keeping, asked) })
	return nil
}

// create writes the key if it does not exist, else returns a *HeldError.
func (l *Lease) create(ctx context.Context, value string) error {
	resp, err := l.etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(l.key), "=", 0)).
		Then(clientv3.OpPut(l.key, value, clientv3.WithLease(l.id))).
		Else(clientv3.OpGet(l.key)).
		Commit()
	if err != nil {
		return fmt.Errorf("create %s: %w", l.key, err)
	}
	if !resp.Succeeded {
		kv := resp.Responses[0].GetResponseRange().Kvs[0]
		held := &HeldError{Key: l.key, Rev: kv.CreateRevision, TTL: l.remaining(ctx, clientv3.LeaseID(kv.Lease))}
		_ = json.Unmarshal(kv.Value, &held.Info) // a strange value is still a held lease
		return held
	}
	l.revision = resp.Header.Revision
	return nil
}

// remaining is for people: 0 when it is not known.
func (l *Lease) remaining(ctx context.Context, id clientv3.LeaseID) time.Duration {
	resp, err := l.etcd.TimeToLive(ctx, id)
	if err != nil || resp.TTL < 0 {
		return 0
	}
	return time.Duration(resp.TTL) * time.Second
}

// keep renews the lease until ctx ends or the lease is lost. Time is counted
// from before each request, so that the holder never believes in the lease for
// longer than etcd keeps it.
func (l *Lease) keep(ctx context.Context, renewed time.Time) {
	part := l.ttl / leaseParts
	ticker := time.NewTicker(part)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			l.end(nil)
			return
		case <-l.done:
			return
		case <-ticker.C:
		}
		at, giveUp := time.Now(), renewed.Add(l.ttl-part)
		err := l.renew(ctx, earlier(at.Add(part), giveUp))
		switch {
		case err == nil:
			renewed = at
		case errors.Is(err, ErrLeaseLost):
			l.end(err)
		case !time.Now().Before(giveUp):
			l.end(fmt.Errorf("%w: not renewed since %s: %w", ErrLeaseLost, renewed.UTC().Format(time.RFC3339), err))
		}
	}
}

func (l *Lease) renew(ctx context.Context, deadline time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	_, err := l.etcd.KeepAliveOnce(ctx, l.id)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return fmt.Errorf("%w: it has ended in etcd", ErrLeaseLost)
	}
	if err != nil {
		return fmt.Errorf("renew lease: %w", err)
	}
	return l.verify(ctx)
}

// verify asks etcd whether the key is still the one that we created.
func (l *Lease) verify(ctx context.Context) error {
	resp, err := l.etcd.Get(ctx, l.key)
	switch {
	case err != nil:
		return fmt.Errorf("read %s: %w", l.key, err)
	case len(resp.Kvs) == 0:
		return fmt.Errorf("%w: %s is gone", ErrLeaseLost, l.key)
	case resp.Kvs[0].CreateRevision != l.revision:
		return fmt.Errorf("%w: %s was created anew: %s", ErrLeaseLost, l.key, resp.Kvs[0].Value)
	}
	return nil
}

// end closes done once; err is why the lease was lost, nil after Release.
func (l *Lease) end(err error) {
	l.once.Do(func() {
		l.err = err
		close(l.done)
	})
}

// Done is closed when the lease was lost or released.
func (l *Lease) Done() <-chan struct{} { return l.done }

// Err says why the lease was lost: nil while it is held and after Release.
func (l *Lease) Err() error {
	select {
	case <-l.done:
		return l.err
	default:
		return nil
	}
}

// FenceToken grows with every new holder of the same cluster: it is the etcd
// revision at which the key was created.
func (l *Lease) FenceToken() int64 { return l.revision }

// Check asks etcd whether the lease is still ours. An error that wraps
// ErrLeaseLost means no; any other error means that it is not known.
func (l *Lease) Check(ctx context.Context) error {
	if err := l.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	err := l.verify(ctx)
	if errors.Is(err, ErrLeaseLost) {
		l.end(err)
	}
	return err
}

// Update replaces what the lease says of its holder, if it is still ours; the
// errors are those of Check.
func (l *Lease) Update(ctx context.Context, info LeaseInfo) error {
	value, err := json.Marshal(info)
	if err != nil {
		return fmt.Errorf("encode lease info: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	resp, err := l.etcd.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(l.key), "=", l.revision)).
		Then(clientv3.OpPut(l.key, string(value), clientv3.WithLease(l.id))).
		Commit()
	if err != nil {
		return fmt.Errorf("update %s: %w", l.key, err)
	}
	if !resp.Succeeded {
		return l.Check(ctx)
	}
	return nil
}

// Release stops the renewals, waits for them to end, and gives the lease back.
// If that cannot be told to etcd, the lease ends by itself after its TTL.
// Releasing a lease that was lost, or twice, is no error and harms nobody.
func (l *Lease) Release(ctx context.Context) error {
	l.cancel()
	l.joined.Wait()
	if err := l.revoke(ctx); err != nil {
		return fmt.Errorf("release lease: %w", err)
	}
	return nil
}

// revoke ends our etcd lease, and with it our key but never another's.
func (l *Lease) revoke(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	_, err := l.etcd.Revoke(ctx, l.id)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return nil
	}
	return err
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
