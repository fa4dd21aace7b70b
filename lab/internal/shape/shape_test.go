package shape_test

import (
	"strings"
	"testing"

	"github.com/brctl/brctl/lab/internal/shape"
)

func TestARegionHasAtMostOneReplicaPerStore(t *testing.T) {
	for _, tc := range []struct {
		hosts, perHost, replicas int
		ok                       bool
	}{
		{3, 1, 3, true}, {1, 1, 1, true}, {2, 2, 2, true}, {2, 2, 4, true}, {3, 2, 5, true},
		{3, 1, 5, false}, {1, 1, 3, false}, {2, 2, 5, false},
	} {
		s := shape.Default()
		s.Hosts, s.TiKVPerHost, s.Replicas = tc.hosts, tc.perHost, tc.replicas
		err := s.Validate()
		if tc.ok && err != nil {
			t.Errorf("%+v: got %v, want no error", tc, err)
		}
		if !tc.ok && (err == nil || !strings.Contains(err.Error(), "--replicas")) {
			t.Errorf("%+v: got %v, want a refusal of --replicas", tc, err)
		}
	}
}
