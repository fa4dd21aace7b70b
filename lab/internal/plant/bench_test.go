package plant_test

import (
	"testing"
	"time"

	"github.com/brctl/brctl/lab/internal/plant"
)

// BenchmarkHost backs up 64 stores of 2,000 regions each, 128,000 in all, on
// one contended host with keepers that tick every 10 s, waking up for each event
// as a caller in real time would.
func BenchmarkHost(b *testing.B) {
	b.ReportAllocs()
	wakeups := 0
	for b.Loop() {
		h := plant.NewHost(64, 0.5)
		ended := 0
		for i := range 64 {
			s := h.AddStore(time.Duration(i)*time.Millisecond, config(4, 8, 10*second))
			for range 4 {
				s.Request(second, regions(500, 16*second))
			}
		}
		for ended < 64*4 {
			at, _ := h.NextEvent()
			wakeups++
			for _, e := range h.Advance(at) {
				if e.Kind == plant.RequestEnded {
					ended++
				}
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(wakeups), "µs/wakeup")
	b.ReportMetric(128000*float64(b.N)/b.Elapsed().Seconds(), "regions/s")
}
