package metricspage

import (
	"io"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Snapshot is what one page says. The zero value renders as a process that has
// done nothing.
type Snapshot struct {
	Version   string // e.g. "8.5.0"
	GitHash   string
	StartTime time.Time
	Cores     float64       // tikv_server_cpu_cores_quota
	CPU       time.Duration // of the process; shown in whole seconds
	Threads   []ThreadCPU

	PoolSize  int // tikv_backup_thread_pool_size
	SoftLimit int // tikv_backup_softlimit

	RangeSeconds map[string]*Histogram // by type: snapshot, scan, save, ...
	RangeBytes   map[string]*Histogram // by column family
	ScanKVs      map[string]uint64     // by column family
	ScanBytes    map[string]uint64     // by column family
	Errors       map[string]uint64     // by error
	GRPCSeconds  map[string]*Histogram // by type: kv_get, coprocessor, ...

	Filler *Filler // nil: none
}

// ThreadCPU is one series of tikv_thread_cpu_seconds_total.
type ThreadCPU struct {
	Name string // as the label shows it, see [NormalizeThreadName]
	TID  int
	CPU  time.Duration
}

// clockTick is the resolution of a thread's CPU time on Linux.
const clockTick = 10 * time.Millisecond

// WriteTo writes the page, families in order of name as TiKV does.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	families := slices.Concat(s.processFamilies(), s.backupFamilies(), s.serverFamilies(), s.Filler.families())
	slices.SortStableFunc(families, byName)
	p := newPage(w)
	for _, f := range families {
		p.family(f)
	}
	return p.flush()
}

func (s *Snapshot) processFamilies() []family {
	return []family{
		scalar("process_cpu_seconds_total", counter,
			"Total user and system CPU time spent in seconds.", float64(s.CPU/time.Second)),
		scalar("process_start_time_seconds", gauge,
			"Start time of the process since unix epoch in seconds.", float64(s.startSeconds())),
		{"tikv_thread_cpu_seconds_total", gauge,
			"Total user and system CPU time spent in seconds by threads.", s.writeThreads},
	}
}

func (s *Snapshot) startSeconds() int64 {
	if s.StartTime.IsZero() {
		return 0
	}
	return s.StartTime.Unix()
}

func (s *Snapshot) writeThreads(p *page) {
	for _, t := range s.Threads {
		labels := label("name", t.Name) + "," + label("tid", strconv.Itoa(t.TID))
		p.sample("tikv_thread_cpu_seconds_total", "", labels, t.CPU.Truncate(clockTick).Seconds())
	}
}

func (s *Snapshot) backupFamilies() []family {
	return []family{
		counts("tikv_backup_error_counter", "Total number of backup errors", "error", s.Errors),
		histograms("tikv_backup_range_duration_seconds",
			"Bucketed histogram of backup range duration", "type", s.RangeSeconds),
		histograms("tikv_backup_range_size_bytes",
			"Bucketed histogram of backup range size", "cf", s.RangeBytes),
		counts("tikv_backup_scan_kv_count", "Total number of kvs backed up", "cf", s.ScanKVs),
		counts("tikv_backup_scan_kv_size_bytes", "Total size of kvs backed up", "cf", s.ScanBytes),
		scalar("tikv_backup_softlimit", gauge,
			"Soft limit applied to the backup thread pool.", float64(s.SoftLimit)),
		scalar("tikv_backup_thread_pool_size", gauge,
			"Total size of backup thread pool", float64(s.PoolSize)),
	}
}

func (s *Snapshot) serverFamilies() []family {
	return []family{
		histograms("tikv_grpc_msg_duration_seconds",
			"Bucketed histogram of grpc server messages", "type", s.GRPCSeconds),
		scalar("tikv_server_cpu_cores_quota", gauge,
			"Total CPU cores quota for TiKV server", s.Cores),
		{"tikv_server_info", gauge,
			"Indicate the tikv server info, and the value is the server startup timestamp(s).", s.writeInfo},
	}
}

func (s *Snapshot) writeInfo(p *page) {
	labels := label("hash", s.GitHash) + "," + label("version", s.Version)
	p.sample("tikv_server_info", "", labels, float64(s.startSeconds()))
}

// scalar is a family of one sample. TiKV leaves out counters that are zero
// (server.simplify-metrics, on by default), and so does this page.
func scalar(name string, typ metricType, help string, value float64) family {
	if typ == counter && value == 0 {
		return family{}
	}
	return family{name, typ, help, func(p *page) { p.sample(name, "", "", value) }}
}

// counts is a counter per value of one label; see scalar for what is left out.
func counts(name, help, key string, values map[string]uint64) family {
	if len(values) == 0 {
		return family{}
	}
	return family{name, counter, help, func(p *page) {
		for _, k := range slices.Sorted(maps.Keys(values)) {
			p.sample(name, "", label(key, k), float64(values[k]))
		}
	}}
}

func histograms(name, help, key string, values map[string]*Histogram) family {
	if len(values) == 0 {
		return family{}
	}
	return family{name, histogram, help, func(p *page) {
		for _, k := range slices.Sorted(maps.Keys(values)) {
			p.histogram(name, label(key, k), values[k])
		}
	}}
}
