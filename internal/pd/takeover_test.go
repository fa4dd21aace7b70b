package pd_test

import (
	"errors"
	"testing"
	"time"

	"github.com/brctl/brctl/internal/pd"
)

// refusal returns what a second holder is told.
func refusal(t *testing.T, c *pd.Client) *pd.HeldError {
	t.Helper()
	_, err := c.Acquire(t.Context(), leaseInfo("run-2"), time.Minute)
	var held *pd.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("got %v, want a HeldError", err)
	}
	return held
}

func TestTheLeaseOfAHolderKnownToBeDeadIsTakenOverAtOnce(t *testing.T) {
	t.Parallel() // they wait more than they work
	etcd := startEtcd(t)
	c := newClient(t, 5*time.Second, etcd.url)
	dead := mustAcquire(t, c, "run-1", time.Minute)
	l, err := c.TakeOver(t.Context(), refusal(t, c), leaseInfo("run-2"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if l.FenceToken() <= dead.FenceToken() {
		t.Errorf("token %d after %d", l.FenceToken(), dead.FenceToken())
	}
	if err := dead.Check(t.Context()); !errors.Is(err, pd.ErrLeaseLost) {
		t.Errorf("a holder that was not dead after all is told %v, want ErrLeaseLost", err)
	}
	if err := dead.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := l.Check(t.Context()); err != nil {
		t.Errorf("the old holder's release took the new one's lease: %v", err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestOnlyTheHolderThatWasSeenIsTakenOver(t *testing.T) {
	t.Parallel() // they wait more than they work
	etcd := startEtcd(t)
	c := newClient(t, 5*time.Second, etcd.url)
	first := mustAcquire(t, c, "run-1", time.Minute)
	seen := refusal(t, c)
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := mustAcquire(t, c, "run-3", time.Minute)

	_, err := c.TakeOver(t.Context(), seen, leaseInfo("run-2"), time.Minute)
	var held *pd.HeldError
	if !errors.As(err, &held) || held.Info.RunID != "run-3" {
		t.Errorf("got %v, want run-3 to hold it", err)
	}
	if err := other.Check(t.Context()); err != nil {
		t.Errorf("another holder was thrown out: %v", err)
	}
}

func TestOnlyAHolderFromTheSameStateDirectoryIsTakenOver(t *testing.T) {
	t.Parallel() // they wait more than they work
	etcd := startEtcd(t)
	c := newClient(t, 5*time.Second, etcd.url)
	for name, ids := range map[string]struct{ holder, ours, host string }{
		"another directory":            {"a", "b", "backup-1"},
		"the holder does not name one": {"", "b", "backup-1"},
		"we do not name one":           {"a", "", "backup-1"},
		"neither of the two names one": {"", "", "backup-1"},
		"a clone of the machine":       {"a", "a", "backup-2"},
	} {
		theirs, ours := leaseInfo("run-1"), leaseInfo("run-2")
		theirs.StateID, ours.StateID, ours.Owner = ids.holder, ids.ours, ids.host
		l, err := c.Acquire(t.Context(), theirs, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.TakeOver(t.Context(), refusal(t, c), ours, time.Minute)
		var held *pd.HeldError
		if !errors.As(err, &held) || held.Info.RunID != "run-1" {
			t.Errorf("%s: got %v, want run-1 to hold it", name, err)
		}
		if err := l.Check(t.Context()); err != nil {
			t.Errorf("%s: the holder was thrown out: %v", name, err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
