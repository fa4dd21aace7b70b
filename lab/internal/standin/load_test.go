package standin

import (
	"math"
	"testing"
)

func TestALoadThatCannotBeReplayedIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		points []Point
		ok     bool
	}{
		"one value":            {[]Point{{0, 0.6}}, true},
		"two at the same time": {[]Point{{0, 0.1}, {3, 0.7}, {3, 2}}, true},
		"no point":             {nil, false},
		"before the start":     {[]Point{{-1, 0.1}}, false},
		"back in time":         {[]Point{{5, 0.1}, {1, 0.1}}, false},
		"more than two hosts":  {[]Point{{0, 2.1}}, false},
		"less than nothing":    {[]Point{{0, -0.1}}, false},
		"not a number":         {[]Point{{0, math.NaN()}}, false},
		"at no time":           {[]Point{{math.NaN(), 0.1}}, false},
	} {
		if err := checkPoints(tc.points); (err == nil) != tc.ok {
			t.Errorf("%s: got %v, want accepted: %t", name, err, tc.ok)
		}
	}
}
