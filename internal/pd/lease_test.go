package pd_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/brctl/brctl/internal/pd"
	"github.com/brctl/brctl/internal/pd/pdtest"
)

var leaseKey = fmt.Sprintf("/brctl/%d/lease", pdtest.ClusterID)

func leaseInfo(run string) pd.LeaseInfo {
	return pd.LeaseInfo{
		Owner: "backup-1", PID: 4711, RunID: run, StateDir: "/var/lib/brctl", StateID: "01JDX4V0000000000000000000",
		Since: time.Date(2026, 11, 30, 2, 0, 0, 0, time.UTC),
	}
}

// mustAcquire returns a lease that ends with the test.
func mustAcquire(t *testing.T, c *pd.Client, run string, ttl time.Duration) *pd.Lease {
	t.Helper()
	l, err := c.Acquire(t.Context(), leaseInfo(run), ttl)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Release(t.Context()) }) //nolint:errcheck // etcd may be gone on purpose
	return l
}

// wantLost waits until the lease is known to be lost.
func wantLost(t *testing.T, l *pd.Lease, within time.Duration) {
	t.Helper()
	select {
	case <-l.Done():
	case <-time.After(within):
		t.Fatalf("the lease still counts as held after %s", within)
	}
	if !errors.Is(l.Err(), pd.ErrLeaseLost) {
		t.Errorf("got %v, want ErrLeaseLost", l.Err())
	}
	if err := l.Check(t.Context()); !errors.Is(err, pd.ErrLeaseLost) {
		t.Errorf("check: got %v, want ErrLeaseLost", err)
	}
}

func TestASecondHostIsRefusedWithTheHoldersNameAtOnce(t *testing.T) {
	t.Parallel() // they wait more than they work
	etcd := startEtcd(t)
	first, second := newClient(t, 5*time.Second, etcd.url), newClient(t, 5*time.Second, etcd.url)
	l := mustAcquire(t, first, "run-1", time.Minute)

	began := time.Now()
	_, err := second.Acquire(t.Context(), leaseInfo("run-2"), time.Minute)
	var held *pd.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("got %v, want a HeldError", err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("the refusal took %s", took)
	}
	if diff := cmp.Diff(leaseInfo("run-1"), held.Info); diff != "" {
		t.Errorf("holder differs (-want +got):\n%s", diff)
	}
	if held.Key != leaseKey || held.TTL < 55*time.Second || held.TTL > time.Minute {
		t.Errorf("got key %s, ttl %s", held.Key, held.TTL)
	}
	if err := l.Check(t.Context()); err != nil {
		t.Errorf("the refusal disturbed the holder: %v", err)
	}

	leases, err := etcd.client(t).Leases(t.Context())
	if err != nil || len(leases.Leases) != 1 {
		t.Errorf("etcd keeps %d leases, want the holder's only (%v)", len(leases.Leases), err)
	}
}

func TestARefusalReadsWell(t *testing.T) {
	const known = "lease /brctl/7/lease is held by run run-1 on backup-1 (pid 4711, state directory /var/lib/brctl) since 2026-11-30T02:00:00Z; it ends within 28s if its holder is dead"
	if got := (&pd.HeldError{Info: leaseInfo("run-1"), Key: "/brctl/7/lease", TTL: 28 * time.Second}).Error(); got != known {
		t.Errorf("got  %s\nwant %s", got, known)
	}
	const unknown = "lease /brctl/7/lease is held by an unknown holder"
	if got := (&pd.HeldError{Key: "/brctl/7/lease"}).Error(); got != unknown {
		t.Errorf("got  %s\nwant %s", got, unknown)
	}
}

func TestOneOfManyWhoAskAtOnceGetsTheLease(t *testing.T) {
	t.Parallel() // they wait more than they work
	etcd := startEtcd(t)
	const n = 8
	var wg sync.WaitGroup
	won := make(chan *pd.Lease, n)
	for i := range n {
		c := newClient(t, 10*time.Second, etcd.url)
		wg.Go(func() {
			l, err := c.Acquire(t.Context(), leaseInfo(fmt.Sprint("run-", i)), time.Minute)
			switch {
			case err == nil:
				won <- l
			case !errors.As(err, new(*pd.HeldError)):
				t.Errorf("got %v, want a HeldError", err)
			}
		})
	}
	wg.Wait()
	close(won)
	if len(won) != 1 {
		t.Errorf("%d have the lease", len(won))
	}
	for l := range won {
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestAReleasedLeaseIsFreeAtOnceAndItsTokenIsOutdone(t *testing.T) {
	t.Parallel() // they wait more than they work
	etcd := startEtcd(t)
	c := newClient(t, 5*time.Second, etcd.url)
	first := mustAcquire(t, c, "run-1", time.Minute)
	for range 2 {
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-first.Done():
	default:
		t.Error("a released lease still counts as held")
	}
	if err := first.Err(); err != nil {
		t.Errorf("got %v, want nil after a release", err)
	}
	if err := first.Check(t.Context()); !errors.Is(err, pd.ErrLeaseLost) {
		t.Errorf("check after release: got %v", err)
	}

	second := mustAcquire(t, c, "run-2", time.Minute)
	if second.FenceToken() <= first.FenceToken() {
		t.Errorf("token %d after %d", second.FenceToken(), first.FenceToken())
	}
	if err := first.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := second.Check(t.Context()); err != nil {
		t.Errorf("the old holder's release took the new one's lease: %v", err)
	}
}

func TestALeaseOutlivesItsTTLWhileItIsRenewed(t *testing.T) {
	t.Parallel() // they wait more than they work
	etcd := startEtcd(t)
	l := mustAcquire(t, newClient(t, 5*time.Second, etcd.url), "run-1", time.Second)
	select {
	case <-l.Done():
		t.Fatal(l.Err())
	case <-time.After(3 * time.Second): // real etcd, real time: three times the ttl
	}
	if err := l.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheLeaseOfADeadHolderIsFreeAfterItsTTL(t *testing.T) {
	t.Parallel() // they wait more than they work
	etcd := startEtcd(t)
	admin := etcd.client(t)
	grant, err := admin.Grant(t.Context(), 2) // a holder that never renews
	if err != nil {
		t.Fatal(err)
	}
	value, _ := json.Marshal(leaseInfo("run-1"))
	if _, err := admin.Put(t.Context(), leaseKey, string(value), clientv3.WithLease(grant.ID)); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, 5*time.Second, etcd.url)
	began := time.Now()
	for {
		l, err := c.Acquire(t.Context(), leaseInfo("run-2"), time.Minute)
		if err == nil {
			_ = l.Release(t.Context())
			break
		}
		if !errors.As(err, new(*pd.HeldError)) || time.Since(began) > 20*time.Second {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // real etcd, real time
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("free after %s, before the ttl of 2 s", took)
	}
}

func TestALeaseWhoseKeyAnOperatorDeletesIsLost(t *testing.T) {
	t.Parallel() // they wait more than they work
	etcd := startEtcd(t)
	l := mustAcquire(t, newClient(t, 5*time.Second, etcd.url), "run-1", 2*time.Second)
	if _, err := etcd.client(t).Delete(t.Context(), leaseKey); err != nil {
		t.Fatal(err)
	}
	wantLost(t, l, 2*time.Second)
}

func TestCheckNoticesAnotherHolderBeforeTheNextRenewal(t *testing.T) {
	t.Parallel() // they wait more than they work
	etcd := startEtcd(t)
	l := mustAcquire(t, newClient(t, 5*time.Second, etcd.url), "run-1", time.Hour)
	admin := etcd.client(t)
	if _, err := admin.Delete(t.Context(), leaseKey); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Put(t.Context(), leaseKey, `{"run_id":"run-2"}`); err != nil {
		t.Fatal(err)
	}
	if err := l.Update(t.Context(), leaseInfo("run-1")); !errors.Is(err, pd.ErrLeaseLost) {
		t.Errorf("update: got %v, want ErrLeaseLost", err)
	}
	wantLost(t, l, time.Second)
	got, err := admin.Get(t.Context(), leaseKey)
	if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != `{"run_id":"run-2"}` {
		t.Errorf("the other holder's value is now %v, %v", got, err)
	}
}

func TestALeaseIsGivenUpBeforeItsTTLWhenPDIsGone(t *testing.T) {
	t.Parallel() // they wait more than they work
	etcd := startEtcd(t)
	const ttl = 3 * time.Second
	l := mustAcquire(t, newClient(t, time.Second, etcd.url), "run-1", ttl)
	etcd.stop()
	began := time.Now()
	wantLost(t, l, ttl)
	t.Logf("given up %s after pd was gone, ttl %s", time.Since(began), ttl)
	if err := l.Release(t.Context()); err == nil {
		t.Error("a release that nobody heard must not look done")
	}
}

func TestUpdateChangesWhatOthersReadAndNothingElse(t *testing.T) {
	t.Parallel() // they wait more than they work
	etcd := startEtcd(t)
	c := newClient(t, 5*time.Second, etcd.url)
	l := mustAcquire(t, c, "", time.Minute)
	token := l.FenceToken()
	if err := l.Update(t.Context(), leaseInfo("run-1")); err != nil {
		t.Fatal(err)
	}
	if err := l.Check(t.Context()); err != nil || l.FenceToken() != token {
		t.Errorf("check after update: %v, token %d, was %d", err, l.FenceToken(), token)
	}
	_, err := c.Acquire(t.Context(), leaseInfo("run-2"), time.Minute)
	var held *pd.HeldError
	if !errors.As(err, &held) || held.Info.RunID != "run-1" {
		t.Errorf("got %v", err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := etcd.client(t).Get(t.Context(), leaseKey); err != nil || got.Count != 0 {
		t.Errorf("the key outlived its release: %v, %v", got, err)
	}
}

func TestAHolderThatWroteNonsenseIsStillAHolder(t *testing.T) {
	t.Parallel() // they wait more than they work
	etcd := startEtcd(t)
	if _, err := etcd.client(t).Put(t.Context(), leaseKey, "reserved by hand"); err != nil {
		t.Fatal(err)
	}
	_, err := newClient(t, 5*time.Second, etcd.url).Acquire(t.Context(), leaseInfo("run-1"), time.Minute)
	if !errors.As(err, new(*pd.HeldError)) {
		t.Errorf("got %v, want a HeldError", err)
	}
}
