package metricspage

import (
	"io"
	"maps"
	"math"
	"sync"
	"time"
)

// Config describes a TiKV process and its page.
type Config struct {
	Version string
	GitHash string
	Cores   float64 // what the process believes it may use
	// FillTo is the size in bytes that the page is filled up to with families
	// that mean nothing; 0 adds none.
	FillTo int
	// ThreadListMin and ThreadListMax bound how often the list of threads is
	// looked at; see [DefaultConfig] for TiKV's values. Both 0: at every call of
	// SetThreads.
	ThreadListMin, ThreadListMax time.Duration
	// IdleWorkerTTL takes backup workers off the page that have been idle for so
	// long; they come back under new ids. 0, as TiKV does it, keeps them until
	// their pool is rebuilt or the process ends. Readers have to cope with both:
	// up to v8.5.1 there are no workers before the first request either.
	IdleWorkerTTL time.Duration
}

// DefaultConfig is a TiKV 8.5.0 with TiKV's own habits and no filler.
func DefaultConfig() Config {
	return Config{
		Version:       "8.5.0",
		GitHash:       "0000000000000000000000000000000000000000",
		ThreadListMin: 15 * time.Second,
		ThreadListMax: 10 * time.Minute,
	}
}

// Store keeps what a TiKV process shows on its page between scrapes.
type Store struct {
	cfg Config

	mu      sync.Mutex
	state   Snapshot // without threads and filler
	threads threadTable
	filler  *Filler
	served  map[string]int // by ObserveBusiness, by type
}

// NewStore returns the page of a process that starts at start.
func NewStore(cfg Config, start time.Time) *Store {
	s := &Store{cfg: cfg}
	s.threads = threadTable{min: cfg.ThreadListMin, max: cfg.ThreadListMax, idleTTL: cfg.IdleWorkerTTL}
	s.Restart(start)
	return s
}

// Restart starts the process anew: counters at zero, a new start time, new
// thread ids.
func (s *Store) Restart(start time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.threads.reset()
	s.served = map[string]int{}
	s.state = Snapshot{
		Version:      s.cfg.Version,
		GitHash:      s.cfg.GitHash,
		StartTime:    start,
		Cores:        s.cfg.Cores,
		RangeSeconds: map[string]*Histogram{},
		RangeBytes:   map[string]*Histogram{},
		ScanKVs:      map[string]uint64{},
		ScanBytes:    map[string]uint64{},
		Errors:       map[string]uint64{},
		GRPCSeconds:  map[string]*Histogram{},
	}
}

// SetThreads says which threads exist at now and what CPU time they have used.
// Call it before each scrape. The CPU time of the process is their sum, threads
// that are gone included.
func (s *Store) SetThreads(now time.Time, threads []Thread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.threads.set(now, threads)
}

// SetBackup sets the gauges of the backup pool.
func (s *Store) SetBackup(poolSize, softLimit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.PoolSize, s.state.SoftLimit = poolSize, softLimit
}

// ObserveRange counts one step of backing up a region, such as "snapshot",
// "scan" or "save".
func (s *Store) ObserveRange(step string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	observe(s.state.RangeSeconds, step, rangeDurationBounds, d.Seconds(), 1)
}

// ObserveRangeSize counts the size of a file that a backup wrote for a column
// family ("default" or "write").
func (s *Store) ObserveRangeSize(cf string, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	observe(s.state.RangeBytes, cf, rangeSizeBounds, float64(bytes), 1)
}

// AddScan counts keys and bytes that a backup read from a column family.
func (s *Store) AddScan(cf string, kvs, bytes uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.ScanKVs[cf] += kvs
	s.state.ScanBytes[cf] += bytes
}

// AddError counts a backup error by TiKV's word for it, such as "not_leader".
func (s *Store) AddError(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Errors[kind]++
}

// ObserveGRPC counts a request, such as "kv_get" or "coprocessor".
func (s *Store) ObserveGRPC(kind string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	observe(s.state.GRPCSeconds, kind, grpcBounds, d.Seconds(), 1)
}

// ObserveBusiness counts n requests of a business load whose latency has the
// given mean and the long tail that such loads have: p50 is about 0.8 and p95
// about 2.4 times the mean. It draws no random numbers.
func (s *Store) ObserveBusiness(kind string, n int, mean time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		step := s.served[kind] % len(latencyShape)
		s.served[kind]++
		observe(s.state.GRPCSeconds, kind, grpcBounds, latencyShape[step]*mean.Seconds(), 1)
	}
}

// latencyShape is a log-normal distribution of mean 1, cut into equal steps.
var latencyShape = logNormal(0.65, 40)

func logNormal(sigma float64, steps int) []float64 {
	shape, sum := make([]float64, steps), 0.0
	for i := range shape {
		quantile := (float64(i) + 0.5) / float64(steps)
		shape[i] = math.Exp(sigma * math.Sqrt2 * math.Erfinv(2*quantile-1))
		sum += shape[i]
	}
	for i := range shape {
		shape[i] *= float64(steps) / sum
	}
	return shape
}

func observe(into map[string]*Histogram, key string, bounds []float64, v float64, n uint64) {
	h := into[key]
	if h == nil {
		h = NewHistogram(bounds)
		into[key] = h
	}
	h.Observe(v, n)
}

// Snapshot is what the page says now; later observations do not change it.
func (s *Store) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := s.state
	snap.CPU = s.threads.cpu
	snap.Threads = s.threads.series()
	snap.RangeSeconds = cloneAll(s.state.RangeSeconds)
	snap.RangeBytes = cloneAll(s.state.RangeBytes)
	snap.GRPCSeconds = cloneAll(s.state.GRPCSeconds)
	snap.ScanKVs = maps.Clone(s.state.ScanKVs)
	snap.ScanBytes = maps.Clone(s.state.ScanBytes)
	snap.Errors = maps.Clone(s.state.Errors)
	snap.Filler = s.fill(&snap)
	return snap
}

// fill sizes the filler at the first scrape; from then on it stays the same,
// and the page's size varies with what is real on it.
func (s *Store) fill(snap *Snapshot) *Filler {
	if s.filler == nil {
		size, _ := snap.WriteTo(io.Discard)
		s.filler = NewFiller(s.cfg.FillTo - int(size))
	}
	return s.filler
}

// WriteTo writes the page as it is now.
func (s *Store) WriteTo(w io.Writer) (int64, error) {
	snap := s.Snapshot()
	return snap.WriteTo(w)
}

func cloneAll(m map[string]*Histogram) map[string]*Histogram {
	out := make(map[string]*Histogram, len(m))
	for k, h := range m {
		out[k] = h.clone()
	}
	return out
}
