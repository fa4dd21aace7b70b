package pd_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	pdclient "github.com/tikv/pd/client"

	"github.com/brctl/brctl/internal/pd"
	"github.com/brctl/brctl/pkg/policy"
)

// labVariable names client URLs of a real PD, separated by commas.
const labVariable = "BRCTL_LAB_PD"

// labClient returns a client of a real PD of a bootstrapped cluster.
func labClient(t *testing.T) *pd.Client {
	t.Helper()
	endpoints := os.Getenv(labVariable)
	if endpoints == "" {
		t.Skipf("skip: no real PD: set %s to the pd_endpoints of a lab's lab.json, separated by commas", labVariable)
	}
	return newClient(t, pd.DefaultTimeout, strings.Split(endpoints, ",")...)
}

func TestARealPDTellsItsTopology(t *testing.T) {
	c := labClient(t)
	id, err := c.ClusterID(t.Context())
	if err != nil || id == 0 {
		t.Errorf("cluster id: %d, %v", id, err)
	}
	version, err := c.ClusterVersion(t.Context())
	if err != nil || strings.Count(version, ".") < 2 {
		t.Errorf("version: %q, %v", version, err)
	}
	if n, err := c.MaxReplicas(t.Context()); err != nil || n < 1 {
		t.Errorf("replicas: %d, %v", n, err)
	}
	stores, err := c.StoresWithSizes(t.Context())
	if err != nil || len(stores) == 0 {
		t.Fatalf("stores: %v, %v", stores, err)
	}
	for _, s := range stores {
		t.Logf("%+v", s)
		if s.State == policy.StoreUp && (s.Silent || s.UsedBytes == 0 || s.CapacityBytes == 0 || s.Version == "" || s.StatusAddress == "" || s.StartedAt.IsZero()) {
			t.Errorf("store %d is not read in full", s.ID)
		}
	}
}

func TestARealPDForgetsARemovedServiceSafePoint(t *testing.T) {
	c := labClient(t)
	const id = "br-brctl-lab-test"
	now, err := c.TSO(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	find := func() (policy.ServiceSafePoint, bool) {
		t.Helper()
		sp, err := c.SafePoints(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sp.Services {
			if s.ServiceID == id {
				return s, true
			}
		}
		return policy.ServiceSafePoint{}, false
	}
	hold(t, id, now)
	if s, ok := find(); !ok || s.SafePoint != now || s.ExpiredAt < now.Time().Unix()+50 {
		t.Errorf("got %+v, want safepoint %s for a minute", s, now)
	}
	for range 2 {
		if err := c.RemoveServiceSafePoint(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if s, ok := find(); ok {
		t.Errorf("still there: %+v", s)
	}
}

func TestARealPDKeepsOneHolderOfTheLease(t *testing.T) {
	c := labClient(t)
	first := mustAcquire(t, c, "run-1", 5*time.Second)
	var held *pd.HeldError
	if _, err := c.Acquire(t.Context(), leaseInfo("run-2"), 5*time.Second); !errors.As(err, &held) || held.Info.RunID != "run-1" {
		t.Errorf("got %v, want a HeldError of run-1", err)
	}
	if err := first.Update(t.Context(), leaseInfo("run-1b")); err != nil {
		t.Error(err)
	}
	time.Sleep(7 * time.Second) // real PD, real time: longer than the ttl
	if err := first.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := mustAcquire(t, c, "run-2", 5*time.Second)
	if second.FenceToken() <= first.FenceToken() {
		t.Errorf("token %d after %d", second.FenceToken(), first.FenceToken())
	}
	if err := second.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// hold registers a service safepoint for a minute, as br does.
func hold(t *testing.T, id string, at policy.TS) {
	t.Helper()
	endpoints := strings.Split(os.Getenv(labVariable), ",")
	conn, err := pdclient.NewClientWithContext(t.Context(), endpoints, pdclient.SecurityOption{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.UpdateServiceGCSafePoint(t.Context(), id, 60, uint64(at)); err != nil {
		t.Fatal(err)
	}
}
