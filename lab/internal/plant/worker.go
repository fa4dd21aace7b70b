package plant

import (
	"container/heap"
	"math"
)

// settle lets permits and threads flow until nothing more can start.
func (s *Store) settle() {
	for {
		if w, ok := s.permits.next(); ok {
			s.grant(w)
			continue
		}
		if !s.dispatch() {
			return
		}
	}
}

func (s *Store) grant(w waiter) {
	if w.worker == nil {
		s.resized(s.host.now)
		return
	}
	s.takeBatch(w.worker)
}

// takeBatch is a worker loop's next round, with the permit in hand. The loop
// ends when no region is left to take.
func (s *Store) takeBatch(w *worker) {
	r := w.req
	if r.next == len(r.regions) {
		s.exit(w)
		return
	}
	w.next = r.next
	w.end = min(w.next+r.batch, len(r.regions))
	r.next = w.end
	w.pool.ready.push(w)
}

// dispatch puts workers that hold a permit on idle threads. It reports whether
// it ended a loop, which frees a permit.
func (s *Store) dispatch() (released bool) {
	for _, p := range s.pools {
		for p.idle > 0 && p.ready.len() > 0 {
			w := p.ready.pop()
			if w.req.canceled {
				s.exit(w)
				return true
			}
			s.begin(w)
		}
	}
	return false
}

// begin puts w on a thread to process the next region of its batch.
func (s *Store) begin(w *worker) {
	w.pool.occupy(w)
	w.region = w.next
	w.next++
	s.host.begun++
	w.began = s.host.begun
	w.from = s.work
	w.until = s.work + s.cost(w.req.regions[w.region])
	heap.Push(&s.running, w)
}

// cost is the CPU time of a region in whole nanoseconds; whole, so that times
// add up exactly while there is no contention.
func (s *Store) cost(bytes int64) float64 {
	return math.Round(float64(bytes) / s.cfg.BytesPerThreadPerSecond * 1e9)
}

// finish takes w, which has processed its region, off its thread. Like TiKV's
// task it yields between regions: with more permits than threads the others get
// their turn.
func (s *Store) finish(w *worker) {
	w.pool.vacate(w, w.until-w.from)
	w.req.done++
	s.host.emit(Event{Kind: RegionDone, Request: w.req, Region: w.region})
	if w.next < w.end {
		w.pool.ready.push(w)
		return
	}
	s.permits.release(1)
	s.permits.wait(waiter{need: 1, worker: w})
}

// exit ends a worker loop that holds a permit.
func (s *Store) exit(w *worker) {
	s.permits.release(1)
	w.pool.loops--
	w.req.loops--
	if w.pool.loops == 0 {
		s.dropPools()
	}
	if w.req.loops == 0 {
		delete(s.requests, w.req)
		s.host.emit(Event{Kind: RequestEnded, Request: w.req})
	}
}

// runHeap orders the workers that process a region by when they will be done,
// then by when they began.
type runHeap []*worker

func (h runHeap) Len() int { return len(h) }

func (h runHeap) Less(i, j int) bool {
	if h[i].until != h[j].until {
		return h[i].until < h[j].until
	}
	return h[i].began < h[j].began
}

func (h runHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *runHeap) Push(x any) { *h = append(*h, x.(*worker)) }

func (h *runHeap) Pop() any {
	old := *h
	last := len(old) - 1
	w := old[last]
	old[last] = nil
	*h = old[:last]
	return w
}
