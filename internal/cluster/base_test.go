package cluster_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/cluster"
	"github.com/brctl/brctl/pkg/policy"
)

// page is a sample of the tests: when it was taken, of which store.
type page struct {
	at    time.Time
	store uint64
}

func TestTheBaseLoadOfAHostIsWhatItsTiKVsUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window = 7 * time.Second
		began := time.Now()
		c := policy.Cluster{
			Stores: []policy.Store{
				tikv(1, "h1", 0), tikv(2, "h1", 1),
				tikv(3, "h2", 0), tikv(4, "h2", 1), // 4 does not tell, as a page without threads
				tikv(5, "h3", 0), // does not answer
				tikv(6, "h4", 0), // stops answering
				tikv(7, "h5", 0), // on a host of unknown size
				tikv(8, "h6", 0), // uses more than there is, by a quota that was raised
			},
			Hosts: []policy.Host{
				{Name: "h1", Cores: 16}, {Name: "h2", Cores: 16}, {Name: "h3", Cores: 16},
				{Name: "h4", Cores: 16}, {Name: "h5"}, {Name: "h6", Cores: 4},
			},
		}
		read := func(_ context.Context, s policy.Store) (page, error) {
			if s.ID == 5 || s.ID == 6 && time.Since(began) > 0 {
				return page{}, errors.New("no answer")
			}
			return page{time.Now(), s.ID}, nil
		}
		cluster.MeasureBase(t.Context(), &c, window, read, func(before, after page) (float64, bool) {
			if before.store != after.store || after.at.Sub(before.at) != window {
				t.Errorf("compared %+v with %+v", before, after)
			}
			return float64(before.store), before.store != 4
		})
		want := []policy.Host{
			{Name: "h1", Cores: 16, BaseLoad: 3.0 / 16, BaseKnown: true}, {Name: "h2", Cores: 16}, {Name: "h3", Cores: 16},
			{Name: "h4", Cores: 16}, {Name: "h5"}, {Name: "h6", Cores: 4, BaseLoad: 1, BaseKnown: true},
		}
		if diff := cmp.Diff(want, c.Hosts); diff != "" {
			t.Errorf("hosts differ (-want +got):\n%s", diff)
		}
	})
}

func TestABaseLoadThatIsGivenUpStaysUnknown(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := policy.Cluster{Stores: []policy.Store{tikv(1, "h1", 0)}, Hosts: []policy.Host{{Name: "h1", Cores: 16}}}
	cluster.MeasureBase(ctx, &c, time.Hour, func(context.Context, policy.Store) (page, error) { return page{}, nil },
		func(page, page) (float64, bool) { return 1, true })
	if c.Hosts[0].BaseKnown {
		t.Errorf("got %+v", c.Hosts[0])
	}
}
