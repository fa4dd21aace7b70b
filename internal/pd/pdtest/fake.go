// Package pdtest has FakePD, a PD cluster in memory for tests.
package pdtest

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pingcap/kvproto/pkg/pdpb"
	"google.golang.org/grpc"

	"github.com/brctl/brctl/pkg/policy"
)

// ClusterID and Version are what a FakePD says of its cluster.
const (
	ClusterID uint64 = 7_300_000_000_000_000_021 // does not fit a float64
	Version          = "8.5.0"
)

// NoLeader as a member's number means none.
const NoLeader = -1

// gcWorkerID is the service that a real PD always lists.
const gcWorkerID = "gc_worker"

// FakePD is a PD cluster that works, in memory, on loopback: gRPC and HTTP on
// one port per member as PD has them, shared state, one leader. It honours the
// times to live of service safepoints by a clock that tests can move.
//
// It does not elect leaders, schedule, keep regions or serve etcd, followers
// answer HTTP themselves instead of forwarding, and nothing survives it.
type FakePD struct {
	members []*member

	mu       sync.Mutex
	leader   int
	replicas int
	skew     time.Duration
	logical  int64
	stores   []policy.Store
	gc       policy.TS
	services map[string]policy.ServiceSafePoint
}

// member is one listener with its own faults.
type member struct {
	pd     *FakePD
	number int
	url    string
	server *http.Server

	mu       sync.Mutex
	replies  map[string]reply
	requests map[string]int
	hang     bool
	closed   chan struct{}
}

type reply struct {
	status int
	body   string
}

// Start runs a cluster of n members until the test ends. Member 0 leads.
func Start(tb testing.TB, n int) *FakePD {
	tb.Helper()
	return start(tb, n, nil)
}

// StartTLS is Start with TLS; config needs a server certificate.
func StartTLS(tb testing.TB, n int, config *tls.Config) *FakePD {
	tb.Helper()
	return start(tb, n, config)
}

// New returns a cluster of one member without a listener: a test serves it with
// Register on a server of its own, and tells it where with SetURL.
func New() *FakePD {
	f := newFake()
	f.members = []*member{newMember(f, 0, "")}
	return f
}

// SetURL is for a FakePD that was made by New, before it is asked anything.
func (f *FakePD) SetURL(url string) { f.members[0].url = url }

func newFake() *FakePD {
	return &FakePD{replicas: 3, services: map[string]policy.ServiceSafePoint{}}
}

func newMember(f *FakePD, number int, url string) *member {
	return &member{
		pd: f, number: number, url: url,
		replies: map[string]reply{}, requests: map[string]int{}, closed: make(chan struct{}),
	}
}

func start(tb testing.TB, n int, config *tls.Config) *FakePD {
	tb.Helper()
	f := newFake()
	for i := range n {
		listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatalf("listen for pd member %d: %v", i, err)
		}
		f.members = append(f.members, newMember(f, i, scheme(config)+listener.Addr().String()))
		f.members[i].serve(tb, listener, config)
	}
	return f
}

func scheme(config *tls.Config) string {
	if config != nil {
		return "https://"
	}
	return "http://"
}

// serve answers on listener until the test ends.
func (m *member) serve(tb testing.TB, listener net.Listener, config *tls.Config) {
	tb.Helper()
	rpc := grpc.NewServer()
	m.Register(rpc)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	m.server = &http.Server{
		Protocols: protocols,
		TLSConfig: config.Clone(), // the server changes it; nil stays nil
		ErrorLog:  log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
				rpc.ServeHTTP(w, r)
				return
			}
			m.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: time.Minute,
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		serve := m.server.Serve
		if config != nil {
			serve = func(l net.Listener) error { return m.server.ServeTLS(l, "", "") }
		}
		if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
			tb.Errorf("serve pd member %d: %v", m.number, err)
		}
	})
	tb.Cleanup(func() { m.stop(); serving.Wait() })
}

func (m *member) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.closed:
	default:
		close(m.closed)
		_ = m.server.Close()
	}
}

// wait blocks while the member hangs.
func (m *member) wait(ctx context.Context) {
	m.mu.Lock()
	hang := m.hang
	m.mu.Unlock()
	if !hang {
		return
	}
	select {
	case <-ctx.Done():
	case <-m.closed:
	}
}

// URLs returns the members' client URLs.
func (f *FakePD) URLs() []string {
	var out []string
	for _, m := range f.members {
		out = append(out, m.url)
	}
	return out
}

// Register serves member 0's gRPC on another server.
func (f *FakePD) Register(s *grpc.Server) { f.members[0].Register(s) }

// Register serves the member's gRPC on s.
func (m *member) Register(s *grpc.Server) { pdpb.RegisterPDServer(s, &service{member: m}) }

// Stop ends a member; it does not come back.
func (f *FakePD) Stop(member int) { f.members[member].stop() }

// Hang makes a member accept requests and never answer them, or answer again.
func (f *FakePD) Hang(member int, hang bool) {
	m := f.members[member]
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hang = hang
}

// Reply makes a member answer an HTTP path (without query) verbatim; a status
// of 0 makes it answer by itself again.
func (f *FakePD) Reply(member int, path string, status int, body string) {
	m := f.members[member]
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replies[path] = reply{status, body}
}

// Requests returns how often a member was asked an HTTP path.
func (f *FakePD) Requests(member int, path string) int {
	m := f.members[member]
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests[path]
}

// SetLeader makes a member the leader, or none with NoLeader.
func (f *FakePD) SetLeader(member int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leader = member
}

// SetReplicas changes replication.max-replicas.
func (f *FakePD) SetReplicas(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replicas = n
}

// SetStores replaces all stores. PD's state names follow from State and Silent.
func (f *FakePD) SetStores(stores ...policy.Store) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stores = slices.Clone(stores)
}

// SetGCSafePoint moves the GC safepoint, in any direction.
func (f *FakePD) SetGCSafePoint(ts policy.TS) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gc = ts
}

// SetService adds a service safepoint or replaces it, expired or not.
func (f *FakePD) SetService(s policy.ServiceSafePoint) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.services[s.ServiceID] = s
}

// Services returns the service safepoints by id.
func (f *FakePD) Services() map[string]policy.ServiceSafePoint {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.services)
}

// Advance moves the cluster's clock.
func (f *FakePD) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.skew += d
}

// Now is the cluster's clock.
func (f *FakePD) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now()
}

func (f *FakePD) now() time.Time { return time.Now().Add(f.skew) }

func (f *FakePD) leads(number int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.leader == number
}
