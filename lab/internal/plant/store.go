package plant

import (
	"container/heap"
	"math"
	"time"
)

// StoreConfig describes one TiKV process.
type StoreConfig struct {
	// Version decides how the thread pool follows num-threads, e.g. "8.5.0".
	Version string
	// Settings it starts with; [Settings.Effective] is applied.
	Settings Settings
	// BytesPerThreadPerSecond is what one thread processes at full speed.
	BytesPerThreadPerSecond float64
	// Cores is the CPU quota the instance believes in; 0 means the host's cores.
	Cores float64
	// IOCoresPerThread is the CPU, in cores, that the backup-io threads burn for
	// each running worker. It adds to the host's demand. 0 leaves them out.
	IOCoresPerThread float64
}

// Store is one TiKV process on a [Host].
type Store struct {
	host     *Host
	cfg      StoreConfig
	settings Settings
	rule     poolRule
	pace     float64 // 1, less when its disk is slow; see SetPace
	process          // everything that a restart loses
}

// process is the state of a TiKV process from start to stop.
type process struct {
	up        bool
	permits   permits
	softLimit int
	keeper    keeper
	pools     []*pool // oldest first, the last is current; old ones have loops
	rebuilds  int     // pools built after the first
	poolGauge int
	running   runHeap
	requests  map[*Request]struct{}

	// work is the CPU time, in nanoseconds, that a thread would have got had it
	// run since the start. It passes more slowly than time under contention, so
	// regions under way need no touching when the speed changes.
	work     float64
	cpu      float64 // all workers, nanoseconds
	ioCPU    float64
	business float64
}

// start begins a process: permits for num-threads, and a first tick at once.
func (s *Store) start(now time.Duration) {
	s.process = process{up: true, softLimit: s.settings.NumThreads, requests: map[*Request]struct{}{}}
	s.permits.release(s.softLimit)
	s.keeper = keeper{due: now, since: now}
	if s.rule == poolFollows {
		s.pools = []*pool{newPool(0, s.settings.NumThreads)}
	}
}

// Apply changes the settings and returns what TiKV makes of them.
func (s *Store) Apply(now time.Duration, want Settings) Settings {
	s.host.run(now)
	s.settings = want.Effective(s.cores())
	return s.settings
}

// Settings are the effective settings.
func (s *Store) Settings() Settings { return s.settings }

// SetPace slows the store's threads to a share of full speed, as a slow disk
// does; 0 hangs them. A slowed thread keeps its permit and burns CPU in
// proportion to its pace.
func (s *Store) SetPace(now time.Duration, pace float64) {
	s.host.run(now)
	s.pace = max(pace, 0)
	s.host.update()
}

// Stop kills the process: requests end, threads and gauges are gone. Settings
// stay. Stopping a stopped store does nothing.
func (s *Store) Stop(now time.Duration) {
	s.host.run(now)
	for _, r := range s.live() {
		r.canceled, r.loops = true, 0
		s.host.emit(Event{Kind: RequestEnded, Request: r})
	}
	s.process = process{}
	s.host.update()
}

// Start starts a stopped process, with counters at zero.
func (s *Store) Start(now time.Duration) {
	s.host.run(now)
	if !s.up {
		s.start(s.host.now)
		s.host.update()
	}
}

// live returns the requests that have not ended, oldest first.
func (s *Store) live() []*Request {
	out := make([]*Request, 0, len(s.requests))
	for r := range s.requests {
		out = append(out, r)
	}
	sortByArrival(out)
	return out
}

// Request delivers a Backup request for regions of the given sizes in bytes. A
// stopped store takes none and returns nil.
func (s *Store) Request(now time.Duration, regions []int64) *Request {
	s.host.run(now)
	if !s.up {
		return nil
	}
	s.host.arrivals++
	r := &Request{
		store:   s,
		regions: regions,
		batch:   s.settings.BatchSize,
		arrived: s.host.now,
		order:   s.host.arrivals,
		loops:   s.settings.NumThreads,
	}
	s.requests[r] = struct{}{}
	p := s.poolFor(s.settings.NumThreads)
	p.loops += r.loops
	for range r.loops {
		s.permits.wait(waiter{need: 1, worker: &worker{req: r, pool: p}})
	}
	s.settle()
	s.host.update()
	return r
}

// poolFor returns the pool for a request that arrives with num-threads at want.
func (s *Store) poolFor(want int) *pool {
	old := s.current()
	size := s.rule.resize(old.size(), want)
	if old.size() == size {
		return old
	}
	generation := 0
	if old != nil {
		s.rebuilds++
		generation = s.rebuilds
	}
	p := newPool(generation, size)
	s.pools = append(s.pools, p)
	s.poolGauge = size
	s.dropPools()
	return p
}

func (s *Store) current() *pool {
	if len(s.pools) == 0 {
		return nil
	}
	return s.pools[len(s.pools)-1]
}

// dropPools forgets replaced pools whose last worker loop is gone.
func (s *Store) dropPools() {
	keep := s.pools[:0]
	for i, p := range s.pools {
		if p.loops > 0 || i == len(s.pools)-1 {
			keep = append(keep, p)
		}
	}
	clear(s.pools[len(keep):])
	s.pools = keep
}

func (s *Store) cores() float64 {
	if s.cfg.Cores > 0 {
		return s.cfg.Cores
	}
	return s.host.cores
}

// rate is how fast the work clock of the store runs: 1 at full speed.
func (s *Store) rate() float64 { return s.host.speed * s.pace }

// demand is the CPU, in cores, that the backup wants now.
func (s *Store) demand() float64 {
	return float64(len(s.running)) * s.pace * (1 + s.cfg.IOCoresPerThread)
}

// accrue lets elapsed nanoseconds pass with nothing changing.
func (s *Store) accrue(elapsed, businessCores float64) {
	if !s.up {
		return
	}
	dw := elapsed * s.rate()
	s.work += dw
	s.cpu += dw * float64(len(s.running))
	s.ioCPU += dw * float64(len(s.running)) * s.cfg.IOCoresPerThread
	s.business += elapsed * businessCores * s.host.speed
}

// nextEvent is when the store changes by itself.
func (s *Store) nextEvent() (time.Duration, bool) {
	if !s.up {
		return 0, false
	}
	at, ok := s.keeper.due, !s.keeper.shrinking
	if done, running := s.nextDone(); running && (!ok || done < at) {
		return done, true
	}
	return at, ok
}

// nextDone is when the first of the regions under way will be done, rounded up
// to the nanosecond.
func (s *Store) nextDone() (time.Duration, bool) {
	if len(s.running) == 0 || s.rate() == 0 {
		return 0, false
	}
	wait := math.Ceil((s.running[0].until - s.work) / s.rate())
	if wait > float64(math.MaxInt64-s.host.now) {
		return 0, false
	}
	return s.host.now + time.Duration(max(wait, 0)), true
}

// fire lets everything happen that is due: regions first, then the keeper.
func (s *Store) fire(now time.Duration) {
	for len(s.running) > 0 && s.running[0].until <= s.work+halfNanosecond {
		s.finish(heap.Pop(&s.running).(*worker))
	}
	s.settle()
	if !s.keeper.shrinking && s.keeper.due <= now {
		s.tick(now)
		s.settle()
	}
}

// halfNanosecond absorbs rounding when regions are due.
const halfNanosecond = 0.5
