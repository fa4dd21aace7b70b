package plant

// permits is the semaphore behind the soft limit: one per store, shared by all
// requests, and fair. TiKV uses tokio's, whose rules matter here: waiters are
// served strictly in order, a released permit goes to the oldest waiter before
// anyone else can take it, and a waiter for several permits collects them one
// by one while everybody behind it waits.
type permits struct {
	free  int
	queue fifo[waiter]
}

// waiter is a worker that wants one permit, or the keeper (worker nil) that
// wants as many as it has to take out of circulation.
type waiter struct {
	need   int
	worker *worker
}

func (p *permits) release(n int) { p.free += n }

func (p *permits) wait(w waiter) { p.queue.push(w) }

// next hands free permits to the oldest waiter and returns it once it has all
// it wants. It returns false when permits or waiters have run out.
func (p *permits) next() (waiter, bool) {
	if p.free == 0 || p.queue.len() == 0 {
		return waiter{}, false
	}
	head := p.queue.front()
	n := min(p.free, head.need)
	p.free -= n
	head.need -= n
	if head.need > 0 {
		return waiter{}, false
	}
	return p.queue.pop(), true
}
