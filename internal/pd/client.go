// Package pd is brctl's one door to PD, the placement driver of a TiDB cluster:
// its stores, configuration, clock, GC safepoints, and the lease in its etcd
// that keeps two brctl off one cluster.
//
// Three protocols live on PD's client port, and each is used for what only it
// can do:
//
//   - gRPC through the official client, which follows the leader: the
//     timestamp oracle, service safepoints, and the exact sizes of a store.
//   - HTTP/JSON: the lists of stores and safepoints, configuration. gRPC has no
//     leader counts and no list of service safepoints.
//   - etcd: the lease.
//
// A Client is made without touching the network; it connects on first use and
// every call ends within Config.Timeout, also when PD accepts connections and
// never answers. The package does not decide anything and holds no topology.
package pd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pingcap/log"
	pdclient "github.com/tikv/pd/client"
	"github.com/tikv/pd/client/errs"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// retryPause is the time between two attempts of a call that met an election or
// a lost connection.
const retryPause = 250 * time.Millisecond

// Client talks to one PD cluster. It is safe for concurrent use.
type Client struct {
	endpoints []string
	tls       *tls.Config
	timeout   time.Duration
	http      *http.Client
	preferred atomic.Int32 // index of the endpoint that answered last

	// gate is a mutex that can be waited for with a context; it guards conn,
	// etcd and closed.
	gate   chan struct{}
	conn   pdclient.Client
	etcd   *clientv3.Client
	closed bool
}

// New checks cfg. It does not touch the network.
//
// The official client logs through a process-wide logger whose default writes
// to stdout, one line a second while PD is away. New replaces that logger by a
// silent one: whatever matters comes back as an error.
func New(cfg Config) (*Client, error) {
	scheme := "http"
	if cfg.TLS != nil {
		scheme = "https"
	}
	endpoints, err := normalizeEndpoints(cfg.Endpoints, scheme)
	if err != nil {
		return nil, err
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	log.ReplaceGlobals(zap.NewNop(), &log.ZapProperties{Level: zap.NewAtomicLevel()})
	return &Client{
		endpoints: endpoints,
		tls:       cfg.TLS,
		timeout:   cfg.Timeout,
		// No proxy: PD is inside, and a proxy variable of the environment is
		// meant for what is outside. A clone, because the transport writes its
		// protocols into the configuration.
		http: &http.Client{Transport: &http.Transport{TLSClientConfig: cfg.TLS.Clone(), ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute}},
		gate: make(chan struct{}, 1),
	}, nil
}

// Close ends all connections. Leases must be released before; calls after Close
// return an error.
func (c *Client) Close() error {
	c.gate <- struct{}{}
	defer c.unlock()
	c.closed = true
	c.http.CloseIdleConnections()
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
	if c.etcd == nil {
		return nil
	}
	err := c.etcd.Close()
	c.etcd = nil
	return err
}

var errClosed = errors.New("pd client is closed")

func (c *Client) lock(ctx context.Context) error {
	select {
	case c.gate <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.closed {
		c.unlock()
		return errClosed
	}
	return nil
}

func (c *Client) unlock() { <-c.gate }

// connect returns the official client, which is made on first use. Its
// constructor retries for minutes while PD is away; here it ends with ctx and
// is tried again by the next call.
func (c *Client) connect(ctx context.Context) (pdclient.Client, error) {
	if err := c.lock(ctx); err != nil {
		return nil, err
	}
	defer c.unlock()
	if c.conn != nil {
		return c.conn, nil
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	conn, err := pdclient.NewClientWithContext(life, c.endpoints, pdclient.SecurityOption{}, c.options()...)
	if !stop() && err == nil { // ctx ended while the constructor succeeded
		conn.Close()
		err = ctx.Err()
	}
	if err != nil {
		end()
		return nil, fmt.Errorf("connect to %s: %w", strings.Join(c.endpoints, ", "), err)
	}
	c.conn = conn
	return conn, nil
}

func (c *Client) options() []pdclient.ClientOption {
	dial := grpc.WithNoProxy()
	if c.tls != nil {
		dial = grpc.WithContextDialer(c.dialTLS)
	}
	return []pdclient.ClientOption{
		// Of one attempt, so that a member that hangs leaves time for others.
		pdclient.WithCustomTimeoutOption(c.timeout / time.Duration(len(c.endpoints)+1)),
		pdclient.WithGRPCDialOptions(dial),
		pdclient.WithInitMetricsOption(false), // they would go to the default registry
	}
}

// dialTLS is TLS for the official client, which by itself knows no server name
// and, given no client certificate, quietly talks plain text. It is therefore
// told of no TLS at all and gets connections that have it.
func (c *Client) dialTLS(ctx context.Context, address string) (net.Conn, error) {
	config := c.tls.Clone()
	config.NextProtos = []string{"h2"}
	dialer := tls.Dialer{Config: config}
	return dialer.DialContext(ctx, "tcp", address)
}

// call runs one idempotent gRPC request, and again while PD elects a leader or
// connections break, until Config.Timeout is over.
func (c *Client) call(ctx context.Context, request func(context.Context, pdclient.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	for {
		err = request(ctx, conn)
		if err == nil || !retriable(err) {
			return err
		}
		conn.GetServiceDiscovery().ScheduleCheckMemberChanged()
		if !pause(ctx) {
			return err
		}
	}
}

// pause waits before another attempt; false means that there is no time for one.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(retryPause):
		return true
	}
}

// retriable reports whether the same request may work on another member or a
// moment later.
func retriable(err error) bool {
	for _, passing := range []error{errs.ErrClientGetProtoClient, errs.ErrClientCreateTSOStream, errs.ErrClientGetTSO} {
		if errors.Is(err, passing) {
			return true
		}
	}
	if errs.IsLeaderChange(err) {
		return true
	}
	switch status.Code(err) { //nolint:exhaustive // all other codes are answers
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return true
	}
	return false
}
