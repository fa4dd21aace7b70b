package plant_test

import (
	"testing"
	"time"

	"github.com/brctl/brctl/lab/internal/plant"
)

// The ranges are those of the field report for NAS, over all its settings, on a
// host of 48 vCPU with 4 TiKVs.
func TestLatencyRiseStaysWithinReportedRanges(t *testing.T) {
	const cores, stores = 48, 4
	for _, tt := range []struct{ base, low, high float64 }{
		{0.25, 0.104, 0.21},
		{0.65, 0.105, 0.30},
	} {
		last := 0.0
		for threads := 2; threads <= 4; threads++ {
			h := plant.NewHost(cores, tt.base)
			for range stores {
				h.AddStore(0, config(threads, 8, time.Minute)).Request(0, regions(100, time.Minute))
			}
			rise := h.BusinessLatency(time.Second).Seconds() - 1
			if rise < tt.low || rise > tt.high || rise <= last {
				t.Errorf("base %g, %d threads: rise %.4f, want %g to %g and more than %.4f",
					tt.base, threads, rise, tt.low, tt.high, last)
			}
			last = rise
		}
		if last < tt.high-0.015 {
			t.Errorf("base %g: the largest rise %.4f does not come near %g", tt.base, last, tt.high)
		}
	}
}

func TestLatencyFactorIsOneWithoutBackupAndMonotone(t *testing.T) {
	for base := 0.0; base <= 1.5; base += 0.05 {
		if f := plant.LatencyFactor(base, base); f != 1 {
			t.Errorf("factor at base %g = %g, want 1", base, f)
		}
		for u := base; u <= 3; u += 0.01 {
			if plant.LatencyFactor(base, u+0.01) <= plant.LatencyFactor(base, u) {
				t.Errorf("base %g: factor does not grow at %g", base, u)
			}
		}
	}
}
