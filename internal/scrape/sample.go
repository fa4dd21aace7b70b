package scrape

import (
	"bytes"
	"time"
)

// Value is a number that may be unknown. It is never NaN or infinite. The zero
// Value is unknown.
type Value struct {
	V     float64
	Known bool
}

func known(v float64) Value { return Value{V: v, Known: true} }

// plus adds two values; the sum is known if both are.
func (v Value) plus(other Value) Value {
	if !v.Known || !other.Known {
		return Value{}
	}
	return known(v.V + other.V)
}

// Sample is one page of a store.
type Sample struct {
	At        time.Time // when the store had answered, by our clock
	StartedAt time.Time // process_start_time_seconds; zero when unknown

	// SoftLimit is the number of backup threads that may run now. TiKV sets it
	// when a change has been carried out, so it says when a new num-threads has
	// arrived.
	SoftLimit    Value // tikv_backup_softlimit
	PoolSize     Value // tikv_backup_thread_pool_size, threads
	Cores        Value // tikv_server_cpu_cores_quota: the instance's limit, may be fractional
	ProcessCPU   Value // process_cpu_seconds_total, whole seconds
	ScannedBytes Value // tikv_backup_scan_kv_size_bytes, all column families

	// Threads are the threads that TiKV lists. It looks for new ones every 15 s
	// to 10 min, and a thread that ended is no longer listed. Empty when the page
	// has none.
	Threads []Thread
}

// Role is what a thread is to a backup.
type Role int

// The roles.
const (
	RoleOther  Role = iota
	RoleWorker      // runs backup requests; num-threads governs these
	RoleIO          // backup-io: uploads; not governed by num-threads
)

// Thread is the CPU time of one thread since it started.
type Thread struct {
	TID     int64
	Role    Role
	Seconds float64
}

// WorkerSeconds is the CPU time of the backup workers that are alive. It falls
// when one of them ends: rates come from Window.
func (s Sample) WorkerSeconds() Value {
	if len(s.Threads) == 0 {
		return Value{}
	}
	sum := 0.0
	for _, t := range s.Threads {
		if t.Role == RoleWorker {
			sum += t.Seconds
		}
	}
	return known(sum)
}

// roleOf knows the worker names of all versions: bkwkr (up to v8.5.1), bkwkr_v0,
// bkwkr_v1, … (v8.5.2 and later, the number grows with each resize) and
// backup_worker_v0, … (2026). Log backup's threads are named backup_stream… and
// are none of these.
func roleOf(name []byte) Role {
	switch {
	case bytes.HasPrefix(name, []byte("bkwkr")), bytes.HasPrefix(name, []byte("backup_worker")):
		return RoleWorker
	case string(name) == "backup_io":
		return RoleIO
	}
	return RoleOther
}
