package metricspage

import (
	"io"
	"strconv"
	"strings"
)

// Filler is a set of families that look like the rest of a TiKV's page. It is
// always the same for the same size.
type Filler struct {
	series []int // how many series of each template
}

// template is a family with as many series as wanted: the first label takes the
// values one after another, and starts over with a number added.
type template struct {
	name   string
	typ    metricType
	help   string
	key    string
	values string // separated by blanks
	rest   string // further labels, rendered
}

// templates are families of a real page that no backup runner needs to read.
var templates = []template{
	{"tikv_allocator_stats", gauge, "Allocator stats", "type", "allocated active metadata resident mapped retained", ""},
	{"tikv_channel_full_total", counter, "Total number of channel full errors.", "type", "raftstore apply store", ""},
	{"tikv_coprocessor_request_duration_seconds", histogram, "Bucketed histogram of coprocessor request duration", "req", "select index analyze_table checksum_table", ""},
	{"tikv_coprocessor_scan_details", counter, "Bucketed counter of coprocessor scan details for each CF", "tag", "seek next prev seek_for_prev over_seek_bound next_tombstone", `cf="write",req="select"`},
	{"tikv_engine_block_cache_size_bytes", gauge, "Usage of each column families' block cache", "cf", "default lock write raft", `db="kv"`},
	{"tikv_engine_compaction_flow_bytes", counter, "Bytes of read/written during compaction", "type", "bytes_read bytes_written", `db="kv"`},
	{"tikv_engine_get_micro_seconds", gauge, "Histogram of get micros", "type", "get_average get_median get_percentile95 get_percentile99 get_max", `db="kv"`},
	{"tikv_engine_memtable_efficiency", counter, "Hit and miss of memtable", "type", "memtable_hit memtable_miss", `db="kv"`},
	{"tikv_engine_num_files_at_level", gauge, "Number of files at each level", "level", "0 1 2 3 4 5 6", `cf="default",db="kv"`},
	{"tikv_engine_size_bytes", gauge, "Sizes of each column families", "type", "default lock write raft", `db="kv"`},
	{"tikv_futurepool_pending_task_total", gauge, "Current future_pool pending + running tasks.", "name", "cleanup-worker sched-worker unified-read-pool", ""},
	{"tikv_pd_heartbeat_message_total", counter, "Total number of PD heartbeat messages.", "type", "send recv pending noop", ""},
	{"tikv_pd_request_duration_seconds", histogram, "Bucketed histogram of PD requests duration", "type", "get_region store_heartbeat region_heartbeat tso", ""},
	{"tikv_raftstore_append_log_duration_seconds", histogram, "Bucketed histogram of peer appending log duration", "store", "0", ""},
	{"tikv_raftstore_apply_log_duration_seconds", histogram, "Bucketed histogram of peer applying log duration", "store", "0", ""},
	{"tikv_raftstore_proposal_total", counter, "Total number of proposal made.", "type", "all local_read read_index unsafe_read_index normal transfer_leader conf_change", ""},
	{"tikv_raftstore_raft_ready_handled_total", counter, "Total number of raft ready handled.", "type", "message commit append snapshot pending_region has_ready_region", ""},
	{"tikv_raftstore_region_count", gauge, "Number of regions collected in region_collector", "type", "region leader buckets", ""},
	{"tikv_scheduler_command_duration_seconds", histogram, "Bucketed histogram of command execution", "type", "prewrite commit cleanup rollback resolve_lock acquire_pessimistic_lock", ""},
	{"tikv_scheduler_kv_command_key_read", histogram, "Bucketed histogram of keys read of a kv command", "type", "get scan prewrite commit", ""},
	{"tikv_scheduler_latch_wait_duration_seconds", histogram, "Bucketed histogram of latch wait", "type", "prewrite commit cleanup rollback", ""},
	{"tikv_storage_command_total", counter, "Total number of commands received.", "type", "get scan batch_get prewrite commit cleanup resolve_lock", ""},
	{"tikv_storage_engine_async_request_duration_seconds", histogram, "Bucketed histogram of processing successful asynchronous requests.", "type", "snapshot write snapshot_local_read", ""},
	{"tikv_threads_state", gauge, "Number of threads in each state.", "state", "R S D", ""},
	{"tikv_unified_read_pool_running_tasks", gauge, "The number of running tasks in the unified read pool", "priority", "low medium high", ""},
	{"tikv_worker_handled_task_total", counter, "Total number of worker handled tasks.", "name", "apply-worker pd-worker split-check snap-handler consistency-check gc-worker", ""},
	{"tikv_worker_pending_task_total", gauge, "Current worker pending + running tasks.", "name", "apply-worker pd-worker split-check snap-handler gc-worker", ""},
}

// NewFiller returns families that take the given number of bytes, or up to one
// series more. It is nil, which is no families, if nothing is to be filled.
func NewFiller(bytes int) *Filler {
	if bytes <= 0 {
		return nil
	}
	f := &Filler{series: make([]int, len(templates))}
	p := newPage(io.Discard)
	for i := 0; p.n < int64(bytes); i = (i + 1) % len(templates) {
		t := templates[i]
		if f.series[i] == 0 {
			p.family(t.family(0))
		}
		t.write(p, f.series[i])
		f.series[i]++
	}
	return f
}

func (f *Filler) families() []family {
	if f == nil {
		return nil
	}
	out := make([]family, len(templates))
	for i, t := range templates {
		if f.series[i] > 0 {
			out[i] = t.family(f.series[i])
		}
	}
	return out
}

// family is the template with its first n series.
func (t template) family(n int) family {
	return family{t.name, t.typ, t.help, func(p *page) {
		for i := range n {
			t.write(p, i)
		}
	}}
}

// write writes the i-th series, with values that depend on nothing but i.
func (t template) write(p *page, i int) {
	values := strings.Fields(t.values)
	value := values[i%len(values)]
	if round := i / len(values); round > 0 {
		value += "-" + strconv.Itoa(round)
	}
	labels := label(t.key, value)
	if t.rest != "" {
		labels += "," + t.rest
	}
	if t.typ != histogram {
		p.sample(t.name, "", labels, float64(1000+i*37%911))
		return
	}
	h := NewHistogram(fillerBounds)
	for j, bound := range fillerBounds {
		h.Observe(bound, uint64((i+j*j)%17))
	}
	p.histogram(t.name, labels, h)
}
