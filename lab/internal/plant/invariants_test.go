package plant_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/brctl/brctl/lab/internal/plant"
)

// walk drives a host with random calls and checks what must always hold.
type walk struct {
	t        *testing.T
	rng      *rand.Rand
	host     *plant.Host
	stores   []*plant.Store
	requests []*plant.Request
	seen     map[*plant.Request]map[int]bool
	ended    map[*plant.Request]bool
	last     time.Duration
	now      time.Duration
}

func TestInvariantsHoldForRandomSequences(t *testing.T) {
	for seed := range uint64(150) {
		w := newWalk(t, seed)
		for range 300 {
			w.step()
			w.check()
		}
		w.drain()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func newWalk(t *testing.T, seed uint64) *walk {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := &walk{
		t:     t,
		rng:   rng,
		host:  plant.NewHost(float64(4+rng.IntN(45)), rng.Float64()),
		seen:  map[*plant.Request]map[int]bool{},
		ended: map[*plant.Request]bool{},
	}
	for range 1 + rng.IntN(3) {
		cfg := config(1+rng.IntN(8), 1+rng.IntN(8), w.refresh())
		cfg.Version = []string{"8.5.1", "8.5.2"}[rng.IntN(2)]
		w.stores = append(w.stores, w.host.AddStore(0, cfg))
	}
	return w
}

func (w *walk) refresh() time.Duration { return time.Duration(1+w.rng.IntN(60)) * second }

func (w *walk) step() {
	w.now += time.Duration(w.rng.Int64N(int64(20 * second)))
	s := w.stores[w.rng.IntN(len(w.stores))]
	switch w.rng.IntN(6) {
	case 0, 1:
		r := s.Request(w.now, regions(w.rng.IntN(30), time.Duration(1+w.rng.Int64N(int64(30*second)))))
		w.requests = append(w.requests, r)
	case 2:
		s.Apply(w.now, plant.Settings{
			NumThreads: 1 + w.rng.IntN(14), BatchSize: 1 + w.rng.IntN(8), Refresh: w.refresh(),
			AutoTune: w.rng.IntN(2) == 0, RemainThreads: w.rng.IntN(4),
		})
	case 3:
		w.host.SetBase(w.now, w.rng.Float64()*1.2)
	case 4:
		if len(w.requests) > 0 && w.rng.IntN(3) == 0 {
			w.requests[w.rng.IntN(len(w.requests))].Cancel(w.now)
		}
	case 5: // only time passes
	}
	w.collect(w.host.Advance(w.now))
}

// collect checks that events come in order and no region is done twice.
func (w *walk) collect(events []plant.Event) {
	for _, e := range events {
		if e.At < w.last || e.At > w.host.Now() {
			w.t.Errorf("event at %v after one at %v, host at %v", e.At, w.last, w.host.Now())
		}
		w.last = e.At
		if w.ended[e.Request] {
			w.t.Errorf("event %+v after the end of its request", e)
		}
		if e.Kind == plant.RequestEnded {
			w.ended[e.Request] = true
			continue
		}
		if w.seen[e.Request] == nil {
			w.seen[e.Request] = map[int]bool{}
		}
		if w.seen[e.Request][e.Region] {
			w.t.Errorf("region %d done twice", e.Region)
		}
		w.seen[e.Request][e.Region] = true
	}
}

func (w *walk) check() {
	for _, s := range w.stores {
		running, busy, threads := s.Running(), 0, s.Threads()
		for _, th := range threads {
			if th.Busy {
				busy++
			}
		}
		if running > s.SoftLimit() || running > len(threads) || running != busy {
			w.t.Errorf("%v: %d running, %d busy of %d threads, softlimit %d",
				w.host.Now(), running, busy, len(threads), s.SoftLimit())
		}
		if s.Requests() > 0 && running == 0 {
			w.t.Errorf("%v: %d requests but nothing runs", w.host.Now(), s.Requests())
		}
	}
	if speed := w.host.Speed(); speed > 1 || speed*w.host.Utilization() > 1+1e-9 {
		w.t.Errorf("speed %g at utilization %g", speed, w.host.Utilization())
	}
	if at, ok := w.host.NextEvent(); !ok || at < w.host.Now() {
		w.t.Errorf("next event at %v (%t), host at %v", at, ok, w.host.Now())
	}
}

// drain lets everything finish and balances work against CPU time.
func (w *walk) drain() {
	w.host.SetBase(w.now, 0)
	for _, s := range w.stores {
		s.Apply(w.now, plant.Settings{NumThreads: 4, BatchSize: 1, Refresh: 10 * time.Minute})
	}
	w.collect(w.host.Advance(w.now + 100*time.Hour))
	work := map[*plant.Store]time.Duration{}
	for _, r := range w.requests {
		if !r.Ended() || r.Done() != len(w.seen[r]) {
			w.t.Errorf("ended %t with %d done, %d seen", r.Ended(), r.Done(), len(w.seen[r]))
		}
		if !r.Canceled() && r.Done() != r.Regions() {
			w.t.Errorf("%d of %d regions done", r.Done(), r.Regions())
		}
		for i := range w.seen[r] {
			work[r.Store()] += time.Duration(r.Bytes(i))
		}
	}
	for _, s := range w.stores {
		if (work[s] - s.BackupCPU()).Abs() > time.Millisecond {
			w.t.Errorf("work of %v took %v of CPU", work[s], s.BackupCPU())
		}
	}
}

func TestSteadyStateTakesBytesOverRateTimesThreads(t *testing.T) {
	const region = 16 * second
	for _, tt := range []struct{ threads, regions, streams int }{{1, 40, 1}, {3, 100, 1}, {4, 1000, 2}, {8, 4000, 4}} {
		h := plant.NewHost(16, 0.25)
		s := h.AddStore(0, config(tt.threads, 1, 60*second))
		for range tt.streams {
			s.Request(0, regions(tt.regions/tt.streams, region))
		}
		var end time.Duration
		for _, e := range h.Advance(1000 * time.Hour) {
			if e.Kind == plant.RegionDone {
				end = e.At
			}
		}
		want := time.Duration(tt.regions) * region / time.Duration(tt.threads)
		if end < want || end > want+region {
			t.Errorf("%+v: took %v, want %v and at most a region more", tt, end, want)
		}
	}
}
