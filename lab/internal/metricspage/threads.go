package metricspage

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Thread is a thread of the process as its owner knows it.
type Thread struct {
	// ID tells the thread from all others of the process; a thread that is
	// replaced needs a new one. The thread id on the page is made up for it.
	ID string
	// Name is the raw OS name, such as "unified-read-po-0" or "bkwkr".
	Name string
	// CPU is its CPU time since it started.
	CPU time.Duration
}

// NormalizeThreadName turns a raw thread name into the label TiKV shows: letters,
// digits, '_' and ':' stay, '-' and blanks become '_', the rest goes. A name
// that loses everything becomes the thread id.
func NormalizeThreadName(raw string, tid int) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == ':':
			return r
		case r == '-', r == ' ':
			return '_'
		}
		return -1
	}, raw)
	if name == "" {
		return strconv.Itoa(tid)
	}
	return name
}

// isBackupWorker knows the names of all versions: bkwkr, bkwkr_v1, and
// backup_worker_v0 on master.
func isBackupWorker(raw string) bool {
	return strings.HasPrefix(raw, "bkwkr") || strings.HasPrefix(raw, "backup-worker")
}

// businessThreads are the threads that carry the business load, and the part of
// it that each has. The parts are made up; they add up to 1.
var businessThreads = []struct {
	prefix string
	n      int
	part   float64
}{
	{"apply-", 2, 0.10},
	{"grpc-server-", 4, 0.16},
	{"raftstore-1-", 2, 0.14},
	{"rocksdb:low", 1, 0.04},
	{"sched-worker-po-", 4, 0.10},
	{"store-writer-", 1, 0.06},
	{"unified-read-po-", 8, 0.40},
}

// BusinessThreads spreads the CPU time of a TiKV's business load over the
// threads that usually carry it.
func BusinessThreads(total time.Duration) []Thread {
	var out []Thread
	for _, t := range businessThreads {
		out = append(out, spread(t.prefix, t.n, time.Duration(float64(total)*t.part))...)
	}
	return out
}

// BackupIOThreads spreads CPU time over the two threads of the backup-io
// runtime, which both bear its name.
func BackupIOThreads(total time.Duration) []Thread {
	return []Thread{
		{ID: "backup-io/0", Name: "backup-io", CPU: total - total/2},
		{ID: "backup-io/1", Name: "backup-io", CPU: total / 2},
	}
}

// spread shares total among n threads; a prefix that ends in '-' gets numbers.
func spread(prefix string, n int, total time.Duration) []Thread {
	out := make([]Thread, n)
	for i := range out {
		name := prefix
		if strings.HasSuffix(prefix, "-") {
			name += strconv.Itoa(i)
		}
		out[i] = Thread{ID: name, Name: name, CPU: total / time.Duration(n)}
	}
	return out
}

// threadTable gives threads their ids and decides which of them the page lists.
//
// TiKV buffers its list of thread ids: it looks again after an interval that
// starts at a minimum, doubles while nothing changes and falls back when
// something does. Until then a new thread is missing, and a dead one keeps its
// last value.
type threadTable struct {
	min, max time.Duration
	idleTTL  time.Duration

	known    map[string]*knownThread
	listed   []*knownThread
	listedAt time.Time
	interval time.Duration
	nextTID  int
	cpu      time.Duration // of all threads that ever lived
}

// knownThread is a thread with the id it was given.
type knownThread struct {
	name    string
	tid     int           // 0: taken off the page for being idle
	base    time.Duration // CPU under former ids
	cpu     time.Duration
	changed time.Time // when the CPU last moved
	present bool      // in the owner's latest list
}

// firstTID and tidGap keep thread ids of one process together and those of
// successive processes apart.
const (
	firstTID = 1000
	tidGap   = 1000
)

// reset starts a new process: all threads get new ids.
func (t *threadTable) reset() {
	t.nextTID = (t.nextTID/tidGap)*tidGap + firstTID
	t.known = map[string]*knownThread{}
	t.listed, t.listedAt, t.interval, t.cpu = nil, time.Time{}, t.min, 0
}

// set takes the owner's list of threads that exist at now.
func (t *threadTable) set(now time.Time, threads []Thread) {
	for _, k := range t.known {
		k.present = false
	}
	for _, th := range threads {
		t.update(now, th)
	}
	for id, k := range t.known {
		if !k.present {
			delete(t.known, id)
		}
	}
	if t.listed == nil || now.Sub(t.listedAt) >= t.interval {
		t.refresh(now)
	}
}

func (t *threadTable) update(now time.Time, th Thread) {
	k := t.known[th.ID]
	if k == nil {
		k = &knownThread{name: th.Name, changed: now, tid: t.newTID()}
		t.known[th.ID] = k
	}
	k.present = true
	if th.CPU > k.cpu {
		t.cpu += th.CPU - k.cpu
		k.cpu, k.changed = th.CPU, now
		if k.tid == 0 {
			k.tid = t.newTID()
		}
	}
	if t.idleTTL > 0 && k.tid != 0 && isBackupWorker(k.name) && now.Sub(k.changed) >= t.idleTTL {
		// The page may list the old thread for a while, so it stays as it is.
		t.known[th.ID] = &knownThread{name: k.name, base: k.cpu, cpu: k.cpu, changed: k.changed, present: true}
	}
}

func (t *threadTable) newTID() int {
	t.nextTID++
	return t.nextTID
}

// refresh looks at the list of threads again.
func (t *threadTable) refresh(now time.Time) {
	var list []*knownThread
	for _, k := range t.known {
		if k.tid != 0 {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b *knownThread) int { return a.tid - b.tid })
	if t.listed != nil && slices.Equal(list, t.listed) {
		t.interval = min(t.interval*2, t.max)
	} else {
		t.interval = t.min
	}
	t.listed, t.listedAt = list, now
}

// series is what the page shows, in order of name and id.
func (t *threadTable) series() []ThreadCPU {
	out := make([]ThreadCPU, 0, len(t.listed))
	for _, k := range t.listed {
		out = append(out, ThreadCPU{NormalizeThreadName(k.name, k.tid), k.tid, k.cpu - k.base})
	}
	slices.SortFunc(out, func(a, b ThreadCPU) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), a.TID-b.TID)
	})
	return out
}
