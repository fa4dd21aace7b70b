package plant

import "time"

// Request is one Backup stream: the regions of its ranges that the store leads,
// in key order.
type Request struct {
	store   *Store
	regions []int64 // bytes
	batch   int     // backup.batch-size as it was at arrival
	arrived time.Duration
	order   int // of arrival on the host

	next     int // first region no worker has taken
	done     int
	loops    int // worker loops alive
	canceled bool
}

// Store is the store that got the request.
func (r *Request) Store() *Store { return r.store }

// Regions is how many regions the request covers.
func (r *Request) Regions() int { return len(r.regions) }

// Bytes is the size of the i-th region.
func (r *Request) Bytes(i int) int64 { return r.regions[i] }

// Done is how many regions have been processed.
func (r *Request) Done() int { return r.done }

// Canceled reports whether the caller closed the stream.
func (r *Request) Canceled() bool { return r.canceled }

// Ended reports whether all worker loops of the request are gone, which is when
// TiKV closes its end of the stream. A loop notices that nothing is left only
// once it has a permit, so with a long queue the end comes well after the last
// region.
func (r *Request) Ended() bool { return r.loops == 0 }

// Arrived is when the request arrived.
func (r *Request) Arrived() time.Duration { return r.arrived }

// Cancel closes the stream. Regions under way are finished; no worker begins
// another one. Loops that queue for a permit leave when they get it.
func (r *Request) Cancel(now time.Duration) {
	h := r.store.host
	h.run(now)
	r.canceled = true
	r.store.settle()
	h.update()
}

// worker is one of the loops that TiKV spawns per request: take a permit, take
// a batch of regions, process them one after another, give the permit back.
type worker struct {
	req  *Request
	pool *pool
	slot int

	next, end int // regions of its batch not yet begun: [next, end)

	region      int     // being processed
	from, until float64 // on the store's work clock
	began       int     // breaks ties between regions done at the same instant
}
