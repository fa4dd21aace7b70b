package policy

import (
	"math"
	"slices"
	"strings"
	"time"
)

// The two published speeds of one backup thread of one TiKV. Sizes are those
// that PD shows, so MB here is MiB.
const (
	// RatePerThreadMeasured is the prior: the 2024 BR v6.5.3 measurements,
	// rate = 6 MB/s · T · Z · N.
	RatePerThreadMeasured = 6.0
	// RatePerThreadManual is what PingCAP's manual says (v5.4 and later), while
	// threads are few.
	RatePerThreadManual = 20.0
)

// The TiKV defaults of the settings that brctl leaves alone without control.
const (
	tikvBatchSize       = 8
	tikvRefreshInterval = time.Minute
)

// batching is what TiKV will batch and how often it will look, with a word on
// where that is from.
type batching struct {
	batch   int
	refresh time.Duration
	source  string
}

// batchingOf puts what TiKV has now in place of settings left alone (0), and
// TiKV's defaults where that is unknown.
func (p *planner) batchingOf(batch int, refresh time.Duration) batching {
	b := batching{batch: batch, refresh: refresh}
	if batch > 0 && refresh > 0 {
		return b
	}
	b.source = " (as TiKV has it now where nothing is set)"
	if b.batch == 0 {
		b.batch = p.in.Cluster.BatchSize
	}
	if b.refresh == 0 {
		b.refresh = p.in.Cluster.RefreshInterval
	}
	if b.batch > 0 && b.refresh > 0 {
		return b
	}
	b.source = " (TiKV's defaults where nothing is set)"
	if b.batch == 0 {
		b.batch = tikvBatchSize
	}
	if b.refresh == 0 {
		b.refresh = tikvRefreshInterval
	}
	return b
}

// model is a cluster reduced to what the formulas need, so that the search
// pays for the topology once. Per store s and host h, with T threads asked:
//
//	threads(s)  = T clamped to [1, floor(cores of s)]
//	rate        = Σ k · threads(s)                         MB/s written
//	duration    = max over s of leader bytes(s) / (k · threads(s))
//	host CPU    = max over h of Σ threads(s on h) / cores(h)
//	GC hold     = duration (PD's GC safepoint cannot pass BackupTS meanwhile)
//
// With equal stores these are the formulas of the 2024 BR v6.5.3 measurements:
// rate = k·T·Z·N, duration = (X/r) / rate, CPU = T·Z/V. A backup round ends
// with its slowest store and the worst host is the one that hurts, hence the
// maxima. TiKV's two backup-io threads come on top and are not bound by T.
type model struct {
	k         float64 // MB/s per thread
	rateLimit float64 // MB/s per TiKV, 0 = none
	impact    measured
	stores    []modelStore // by address
	hosts     []modelHost  // by name
}

type modelStore struct {
	address  string
	leaderMB float64 // what this store backs up
	cores    float64 // the instance's limit, 0 when unknown
	host     int     // index into hosts
	works    bool    // false: br gives it nothing, for its labels
	autoTune bool    // TiKV runs fewer threads than asked when it is busy
}

type modelHost struct {
	name    string
	cores   float64 // 0 when unknown
	base    float64 // share used by the business, 0..1
	assumed bool    // nobody measured or configured base
}

// newModel reduces the stores that can be set to their share of the work. br
// asks every store in the cluster's BackupStores; the regions of a silent one
// are led elsewhere, and with a replica-read label only stores that carry it
// are asked. So one replica of everything, X/r, is spread over the stores that
// work, in proportion to their used bytes (leader sizes are not known).
func newModel(t topology, o Options) *model {
	m := &model{k: o.RatePerThread, impact: measuredOn(o.Medium), hosts: t.hosts(o)}
	if o.RateLimitMBPerS != nil {
		m.rateLimit = float64(*o.RateLimitMBPerS)
	}
	var working uint64
	for _, s := range t.live {
		if carries(s, o.ReplicaReadLabel) {
			working += s.UsedBytes
		}
	}
	scale := float64(t.usedBytes) / float64(max(working, 1)) / float64(t.replicas) / float64(MiB)
	for _, s := range t.live {
		ms := modelStore{address: s.Address, cores: s.Cores, host: m.hostIndex(s.hostName()), works: carries(s, o.ReplicaReadLabel), autoTune: !s.AutoTuneOff}
		if ms.works {
			ms.leaderMB = float64(s.UsedBytes) * scale
		}
		m.stores = append(m.stores, ms)
	}
	return m
}

func (m *model) hostIndex(name string) int {
	i, _ := slices.BinarySearchFunc(m.hosts, name, func(h modelHost, n string) int { return strings.Compare(h.name, n) })
	return i
}

// threads is what an instance gets when t is asked of all.
func (s modelStore) threads(t int) int { return clampThreads(t, s.cores) }

// prediction is what the formulas say of one number of threads and one codec.
type prediction struct {
	rateMBPerS  float64
	duration    time.Duration
	slowest     string // store
	hostShare   float64
	worstHost   string
	totalCPU    float64 // base load and backup of the fullest host
	hostMBPerS  float64 // what the busiest host sends
	impact      impact  // worst host for each of the two
	qpsHost     int     // index of the host behind impact.qps
	p95Host     int
	busiestHost string // behind totalCPU
}

// predict evaluates the formulas in one pass over stores and one over hosts.
func (m *model) predict(t int, codec string) prediction {
	var p prediction
	var slowest float64
	threads := make([]int, len(m.hosts))
	rates := make([]float64, len(m.hosts))
	for _, s := range m.stores {
		if !s.works {
			continue
		}
		n := s.threads(t)
		rate := m.storeRate(n)
		threads[s.host] += n
		rates[s.host] += rate
		p.rateMBPerS += rate
		if took := s.leaderMB / rate; took > slowest || p.slowest == "" {
			slowest, p.slowest = took, s.address
		}
	}
	p.duration = seconds(slowest)
	for i, h := range m.hosts {
		m.addHost(&p, i, h, threads[i], codec)
		p.hostMBPerS = max(p.hostMBPerS, rates[i])
	}
	return p
}

// storeRate is what one TiKV writes with n threads, in MB/s. br's --ratelimit
// is a bound per TiKV.
func (m *model) storeRate(n int) float64 {
	rate := m.k * float64(n)
	if m.rateLimit > 0 {
		rate = min(rate, m.rateLimit)
	}
	return rate
}

// addHost raises the maxima of p by one host. A host whose cores are unknown
// has no share; its impact is forecast at the full measured intensity.
func (m *model) addHost(p *prediction, i int, h modelHost, threads int, codec string) {
	share := fullIntensityShare
	if h.cores > 0 {
		share = float64(threads) / h.cores
		if share > p.hostShare || p.worstHost == "" {
			p.hostShare, p.worstHost = share, h.name
		}
		if total := h.base + share; threads > 0 && (total > p.totalCPU || p.busiestHost == "") {
			p.totalCPU, p.busiestHost = total, h.name
		}
	}
	if threads == 0 {
		return
	}
	got := impactOn(m.impact, h.base, share, codec)
	if got.qps.high > p.impact.qps.high {
		p.impact.qps, p.qpsHost = got.qps, i
	}
	if got.p95.high > p.impact.p95.high {
		p.impact.p95, p.p95Host = got.p95, i
	}
}

// seconds converts to a Duration, saturating at its largest value.
func seconds(s float64) time.Duration {
	if s >= float64(math.MaxInt64)/float64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(s * float64(time.Second))
}

// ExpectedLag is how long a cut of num-threads may take to be applied while a
// backup's queue is long: the upper end, which a pause or a deadline has to
// allow for.
//
// TiKV's keeper looks at the setting once per refresh interval. It then shrinks
// its semaphore by waiting, in FIFO order, behind every queued worker; br keeps
// C streams per store open and each brings T workers for T permits, so C rounds
// of work stand before it; one round is a batch of regions, and one region
// takes its size divided by k MB/s. Hence
//
//	lag = refresh + C · batch · (region bytes / k)
//
// A cut that falls just before a tick, or near the end of the queue, bites
// sooner; the wait for the tick alone is half a refresh on average. TiKV's
// source, v6.5.3 and v8.5; with C = 16, batch 8, 96 MiB regions and 6 MB/s it is
// over half an hour, with C = 1, batch 1, refresh 10 s it is 26 s.
func ExpectedLag(c, batch int, refresh time.Duration, regionBytes uint64, k float64) time.Duration {
	if k <= 0 {
		return math.MaxInt64
	}
	queue := seconds(float64(c) * float64(batch) * float64(regionBytes) / float64(MiB) / k)
	if queue > math.MaxInt64-refresh {
		return math.MaxInt64
	}
	return refresh + queue
}
