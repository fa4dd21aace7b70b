package plant

import "time"

// SoftLimit is tikv_backup_softlimit: the limit of the last completed resize.
// While the keeper waits for permits to shrink, it still shows the old value.
func (s *Store) SoftLimit() int { return s.softLimit }

// PoolSize is the number of threads of the pool that a request would find now:
// 0 up to v8.5.1 before the first request.
func (s *Store) PoolSize() int { return s.current().size() }

// PoolGauge is tikv_backup_thread_pool_size. TiKV sets it only when a request
// changes the pool, so it shows 0 until then, although from v8.5.2 on the pool
// has existed since the start.
func (s *Store) PoolGauge() int { return s.poolGauge }

// Running is how many worker threads process a region at this moment.
func (s *Store) Running() int { return len(s.running) }

// Up reports whether the process runs.
func (s *Store) Up() bool { return s.up }

// Requests is how many requests have not ended.
func (s *Store) Requests() int { return len(s.requests) }

// Shrinking reports whether the keeper waits for permits.
func (s *Store) Shrinking() bool { return s.keeper.shrinking }

// BackupCPU is the CPU time of all backup workers since the process started.
// Bytes processed ÷ BackupCPU is the rate per thread, contention or not.
func (s *Store) BackupCPU() time.Duration { return time.Duration(s.cpu) }

// IOCPU is the CPU time of the backup-io threads.
func (s *Store) IOCPU() time.Duration { return time.Duration(s.ioCPU) }

// BusinessCPU is the CPU time of everything else in the process.
func (s *Store) BusinessCPU() time.Duration { return time.Duration(s.business) }

// Threads lists the worker threads that exist, in a stable order: those of
// replaced pools live until their last worker loop is gone, those of the
// current pool until the process ends.
func (s *Store) Threads() []Thread {
	var out []Thread
	for _, p := range s.pools {
		name := s.rule.threadName(p.generation)
		for i, t := range p.threads {
			cpu := t.cpu
			if t.worker != nil {
				cpu += s.work - t.worker.from
			}
			out = append(out, Thread{
				Name:       name,
				Generation: p.generation,
				Slot:       i,
				CPU:        time.Duration(cpu),
				Busy:       t.worker != nil,
			})
		}
	}
	return out
}
