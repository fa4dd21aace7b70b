package cluster_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/brctl/brctl/internal/cluster"
	"github.com/brctl/brctl/pkg/policy"
)

func TestTheBaseLoadOfAHostIsWhatItsTiKVsUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores := []policy.Store{
			{ID: 1, Address: "h1:1", Host: "h1", State: policy.StoreUp},
			{ID: 2, Address: "h1:2", Host: "h1", State: policy.StoreUp},
			{ID: 3, Address: "h2:1", Host: "h2", State: policy.StoreUp}, // restarts in between
			{ID: 4, Address: "h3:1", Host: "h3", State: policy.StoreUp}, // does not answer
			{ID: 5, Address: "h4:1", Host: "h4", State: policy.StoreUp}, // on a host of unknown size
		}
		c := policy.Cluster{Stores: stores, Hosts: []policy.Host{
			{Name: "h1", Cores: 16}, {Name: "h2", Cores: 16}, {Name: "h3", Cores: 16}, {Name: "h4"},
		}}
		var mu sync.Mutex
		asked := map[uint64]int{}
		cluster.MeasureBase(t.Context(), &c, func(_ context.Context, s policy.Store) (float64, error) {
			mu.Lock()
			defer mu.Unlock()
			asked[s.ID]++
			second := asked[s.ID] == 2
			switch {
			case s.ID == 4:
				return 0, errors.New("no answer")
			case s.ID == 3 && second:
				return 0.5, nil
			case second:
				return 100 + 2*cluster.BaseWindow.Seconds(), nil // two cores
			}
			return 100, nil
		})
		want := []policy.Host{
			{Name: "h1", Cores: 16, BaseLoad: 0.25, BaseKnown: true}, {Name: "h2", Cores: 16}, {Name: "h3", Cores: 16}, {Name: "h4"},
		}
		for i, h := range c.Hosts {
			if h != want[i] {
				t.Errorf("got %+v, want %+v", h, want[i])
			}
		}
	})
}
