package pd_test

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pingcap/log"
	"go.uber.org/zap/zapcore"

	"github.com/brctl/brctl/internal/pd"
	"github.com/brctl/brctl/internal/pd/pdtest"
)

func TestNewRejectsWhatCannotWork(t *testing.T) {
	cases := map[string]struct {
		config pd.Config
		want   string
	}{
		"no endpoint":       {pd.Config{}, "no pd endpoint given"},
		"a path":            {pd.Config{Endpoints: []string{"http://a:2379/pd"}}, `pd endpoint "http://a:2379/pd" is not of the form http://host:port`},
		"https without tls": {pd.Config{Endpoints: []string{"https://a:2379"}}, `pd endpoint "https://a:2379" does not use http (tls settings given: false)`},
		"http with tls":     {pd.Config{Endpoints: []string{"http://a:2379"}, TLS: &tls.Config{ServerName: "pd"}}, `pd endpoint "http://a:2379" does not use https (tls settings given: true)`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := pd.New(c.config)
			if err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// calls are all reading methods, for what must hold for each of them.
func calls(c *pd.Client) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"ClusterID":              func(ctx context.Context) error { _, err := c.ClusterID(ctx); return err },
		"ClusterVersion":         func(ctx context.Context) error { _, err := c.ClusterVersion(ctx); return err },
		"MaxReplicas":            func(ctx context.Context) error { _, err := c.MaxReplicas(ctx); return err },
		"Stores":                 func(ctx context.Context) error { _, err := c.Stores(ctx); return err },
		"SafePoints":             func(ctx context.Context) error { _, err := c.SafePoints(ctx); return err },
		"TSO":                    func(ctx context.Context) error { _, err := c.TSO(ctx); return err },
		"Acquire":                func(ctx context.Context) error { _, err := c.Acquire(ctx, pd.LeaseInfo{}, 0); return err },
		"StoresWithSizes":        func(ctx context.Context) error { _, err := c.StoresWithSizes(ctx); return err },
		"RemoveServiceSafePoint": func(ctx context.Context) error { return c.RemoveServiceSafePoint(ctx, "br-1") },
	}
}

func TestEveryCallEndsInTimeWhenPDAcceptsAndNeverAnswers(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() }) // the kernel goes on accepting; nobody reads
	const timeout = 300 * time.Millisecond
	for name, call := range calls(newClient(t, timeout, silent.Addr().String())) {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			err := call(t.Context())
			if err == nil {
				t.Fatal("got an answer from nobody")
			}
			if took := time.Since(began); took > 2*timeout {
				t.Errorf("took %s with a timeout of %s", took, timeout)
			}
			if !strings.Contains(err.Error(), silent.Addr().String()) {
				t.Errorf("error does not name the endpoint: %v", err)
			}
		})
	}
}

func TestACallEndsWithItsCallersContext(t *testing.T) {
	fake := pdtest.Start(t, 1)
	fake.Hang(0, true)
	for name, call := range calls(newClient(t, time.Hour, fake.URLs()...)) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if err := call(ctx); err == nil {
				t.Fatal("got an answer from a member that hangs")
			}
			if ctx.Err() == nil {
				t.Error("ended before its context")
			}
		})
	}
}

func TestAClientConnectsOncePDComesBack(t *testing.T) {
	fake := pdtest.Start(t, 1)
	c := newClient(t, 400*time.Millisecond, fake.URLs()...)
	fake.Hang(0, true)
	if _, err := c.ClusterID(t.Context()); err == nil {
		t.Fatal("got an answer from a member that hangs")
	}
	fake.Hang(0, false)
	got, err := c.ClusterID(t.Context())
	if err != nil || got != pdtest.ClusterID {
		t.Fatalf("got %d, %v, want %d", got, err, pdtest.ClusterID)
	}
}

func TestAClosedClientSaysSo(t *testing.T) {
	_, c := startOne(t)
	if _, err := c.TSO(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.TSO(t.Context()); err == nil || !strings.Contains(err.Error(), "pd client is closed") {
		t.Errorf("got %v", err)
	}
}

func TestALeaderChangeIsFollowedWithinOneCall(t *testing.T) {
	fake := pdtest.Start(t, 3)
	c := newClient(t, 10*time.Second, fake.URLs()...)
	if _, err := c.TSO(t.Context()); err != nil {
		t.Fatal(err)
	}
	fake.SetLeader(2)
	fake.Stop(0)
	for name, call := range calls(c) {
		if name == "Acquire" {
			continue // FakePD has no etcd
		}
		t.Run(name, func(t *testing.T) {
			if err := call(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAnElectionDelaysACallAndDoesNotFailIt(t *testing.T) {
	fake := pdtest.Start(t, 2)
	c := newClient(t, 10*time.Second, fake.URLs()...)
	if _, err := c.TSO(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, call := range calls(c) {
		if name == "Acquire" || name == "ClusterID" {
			continue // FakePD has no etcd; the id is known
		}
		t.Run(name, func(t *testing.T) {
			fake.SetLeader(pdtest.NoLeader)
			elected := time.AfterFunc(300*time.Millisecond, func() { fake.SetLeader(1) })
			defer elected.Stop()
			began := time.Now()
			if err := call(t.Context()); err != nil {
				t.Error(err)
			}
			if time.Since(began) < 200*time.Millisecond {
				t.Error("got an answer from a cluster without a leader")
			}
		})
	}
}

func TestTheOfficialClientsLoggerIsSilent(t *testing.T) {
	startOne(t)
	if log.L().Core().Enabled(zapcore.ErrorLevel) {
		t.Error("pd's client still logs to stdout")
	}
}
