package metricspage

import (
	"slices"
	"sort"
)

// Histogram counts observations in buckets with fixed upper bounds.
type Histogram struct {
	bounds []float64 // ascending, without +Inf
	counts []uint64  // per bucket, not cumulative; the last is +Inf
	sum    float64
	total  uint64
}

// NewHistogram returns an empty histogram with the given upper bounds.
func NewHistogram(bounds []float64) *Histogram {
	return &Histogram{bounds: bounds, counts: make([]uint64, len(bounds)+1)}
}

// Observe counts a value n times.
func (h *Histogram) Observe(v float64, n uint64) {
	h.counts[sort.SearchFloat64s(h.bounds, v)] += n
	h.sum += v * float64(n)
	h.total += n
}

func (h *Histogram) clone() *Histogram {
	c := *h
	c.counts = slices.Clone(h.counts)
	return &c
}

// exponential returns n bounds, each factor 2 above the one before.
func exponential(first float64, n int) []float64 {
	bounds := make([]float64, n)
	for i := range bounds {
		bounds[i] = first
		first *= 2
	}
	return bounds
}

// Bucket layouts as TiKV registers them, the last excepted.
var (
	grpcBounds          = exponential(50e-6, 22)  // 50 µs to 105 s
	rangeDurationBounds = exponential(0.01, 16)   // 10 ms to 328 s
	rangeSizeBounds     = exponential(4<<10, 20)  // 4 KiB to 2 GiB
	fillerBounds        = exponential(0.0005, 20) // 500 µs to 262 s
)
