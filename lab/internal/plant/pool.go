package plant

import "time"

// pool is one runtime of OS threads. A resize builds a new pool for requests to
// come; worker loops spawned earlier finish on the pool they started on, so
// several can be alive at once.
type pool struct {
	generation int
	threads    []thread
	ready      fifo[*worker] // hold a permit and a region, lack a thread
	loops      int           // worker loops alive on this pool
	idle       int           // threads without a worker
}

// thread is one OS thread. Its CPU time is kept apart from the store's so that
// it can be shown as a series per thread id.
type thread struct {
	cpu    float64 // nanoseconds, without the region under way
	worker *worker // nil when idle
}

func newPool(generation, size int) *pool {
	return &pool{generation: generation, threads: make([]thread, size), idle: size}
}

func (p *pool) size() int {
	if p == nil {
		return 0
	}
	return len(p.threads)
}

// occupy puts w on the first idle thread; the caller knows that there is one.
// Always the first: it makes thread series predictable, where a work-stealing
// runtime would spread them.
func (p *pool) occupy(w *worker) {
	for i := range p.threads {
		if p.threads[i].worker == nil {
			p.threads[i].worker = w
			p.idle--
			w.slot = i
			return
		}
	}
	panic("plant: no idle thread in pool")
}

func (p *pool) vacate(w *worker, cpu float64) {
	t := &p.threads[w.slot]
	t.cpu += cpu
	t.worker = nil
	p.idle++
}

// Thread is a backup worker thread as a metrics page would list it.
type Thread struct {
	Name       string // raw OS name, such as "bkwkr" or "bkwkr-v1"
	Generation int    // which pool of this process, from 0
	Slot       int    // which thread of that pool, from 0
	CPU        time.Duration
	Busy       bool
}
