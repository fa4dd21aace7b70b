package scrape

import "time"

// MinSpan is the shortest time that a rate is taken over. TiKV counts process
// CPU in whole seconds, so a rate over t seconds is uncertain by 1/t cores:
// ± 0.07 cores at 15 s, but a full core at 1 s.
const MinSpan = 15 * time.Second

// gapFactor times the span of a window is the longest time between two samples
// that still belong together; a mean over a longer gap says nothing about now.
const gapFactor = 4

// Window turns the samples of one store into rates. It is pure: no clock, no
// I/O. The zero Window is not usable; see NewWindow. It is not safe for
// concurrent use.
type Window struct {
	span   time.Duration
	last   Sample
	points []point // oldest first; the newest is last's
}

// point is one sample's time and what was added since the sample before it.
type point struct {
	at    time.Time
	added counters
}

// counters are increases between two samples; unknown where one side is.
type counters struct {
	process, threads, workers, io, scanned Value
}

// Rates are means over the time from From to To.
type Rates struct {
	From, To time.Time
	// CPU in cores. Process counts everything. The others are sums over the
	// threads that TiKV listed at both ends of each step, so a thread that has
	// just started or ended is missing for a step: they may be low, never high.
	Process, Threads, Workers, IO Value
	ScannedBytesPerS              Value
}

// Added says what became of a sample.
type Added int

// What becomes of a sample.
const (
	AddedKept      Added = iota // counts
	AddedIgnored                // not newer than the one before: a cached or late page
	AddedRestarted              // the store restarted: everything before it is dropped
	AddedAfterGap               // too long after the one before: everything before it is dropped
)

// NewWindow returns an empty window for rates over at least span. A span below
// MinSpan is raised to it.
func NewWindow(span time.Duration) *Window {
	return &Window{span: max(span, MinSpan)}
}

// Add takes the next sample of the store.
func (w *Window) Add(s Sample) Added {
	if len(w.points) == 0 {
		w.begin(s)
		return AddedKept
	}
	switch step := s.At.Sub(w.last.At); {
	case step <= 0:
		return AddedIgnored
	case restarted(w.last, s):
		w.begin(s)
		return AddedRestarted
	case step > gapFactor*w.span:
		w.begin(s)
		return AddedAfterGap
	}
	w.points = append(w.points, point{at: s.At, added: increase(w.last, s)})
	w.last = s
	w.forget()
	return AddedKept
}

func (w *Window) begin(s Sample) {
	w.points = []point{{at: s.At}}
	w.last = s
}

// forget drops points as long as the rest still covers the span.
func (w *Window) forget() {
	keep := 0
	for keep+1 < len(w.points) && w.last.At.Sub(w.points[keep+1].at) >= w.span {
		keep++
	}
	w.points = append(w.points[:0], w.points[keep:]...)
}

// Rates returns the current rates, and false while the samples do not cover the
// window's span.
func (w *Window) Rates() (Rates, bool) {
	if len(w.points) == 0 {
		return Rates{}, false
	}
	first := w.points[0].at
	took := w.last.At.Sub(first)
	if took < w.span {
		return Rates{}, false
	}
	zero := known(0)
	sum := counters{zero, zero, zero, zero, zero}
	for _, p := range w.points[1:] {
		sum.add(p.added)
	}
	per := func(v Value) Value {
		v.V /= took.Seconds()
		return v
	}
	return Rates{
		From: first, To: w.last.At,
		Process: per(sum.process), Threads: per(sum.threads), Workers: per(sum.workers), IO: per(sum.io),
		ScannedBytesPerS: per(sum.scanned),
	}, true
}

func (c *counters) add(o counters) {
	c.process = c.process.plus(o.process)
	c.threads = c.threads.plus(o.threads)
	c.workers = c.workers.plus(o.workers)
	c.io = c.io.plus(o.io)
	c.scanned = c.scanned.plus(o.scanned)
}

// restarted reports whether the process behind b is another one than behind a.
func restarted(a, b Sample) bool {
	if !a.StartedAt.IsZero() && !b.StartedAt.IsZero() && !a.StartedAt.Equal(b.StartedAt) {
		return true
	}
	return a.ProcessCPU.Known && b.ProcessCPU.Known && b.ProcessCPU.V < a.ProcessCPU.V
}

func increase(a, b Sample) counters {
	c := threadIncrease(a.Threads, b.Threads)
	c.process = difference(a.ProcessCPU, b.ProcessCPU)
	c.scanned = difference(a.ScannedBytes, b.ScannedBytes)
	return c
}

// CoresUsed is the mean number of cores that all threads of a store have used
// between two samples of it: for a single look, where a Window would take too
// long. It comes from the threads, which TiKV counts in hundredths of a second,
// and is low, never high, by those that started or ended in between. It is
// unknown when b is not later than a, after a restart, and where a page lists no
// thread.
func CoresUsed(a, b Sample) Value {
	took := b.At.Sub(a.At)
	if took <= 0 || restarted(a, b) {
		return Value{}
	}
	used := threadIncrease(a.Threads, b.Threads).threads
	used.V /= took.Seconds()
	return used
}

func difference(a, b Value) Value {
	if !a.Known || !b.Known || b.V < a.V {
		return Value{}
	}
	return known(b.V - a.V)
}

// threadIncrease adds up per thread. Sums of both sides must not be compared:
// threads come and go, and ids are given again.
func threadIncrease(a, b []Thread) counters {
	if len(a) == 0 || len(b) == 0 {
		return counters{}
	}
	type identity struct {
		tid  int64
		role Role
	}
	before := make(map[identity]float64, len(a))
	for _, t := range a {
		before[identity{t.TID, t.Role}] = t.Seconds
	}
	var sums [RoleIO + 1]float64
	for _, t := range b {
		if seconds, found := before[identity{t.TID, t.Role}]; found && t.Seconds >= seconds {
			sums[t.Role] += t.Seconds - seconds
		}
	}
	return counters{
		threads: known(sums[RoleOther] + sums[RoleWorker] + sums[RoleIO]),
		workers: known(sums[RoleWorker]),
		io:      known(sums[RoleIO]),
	}
}
