package engine

import "sync"

// latches serialise writers of the same key, as the storage engine asks of its region table. One set serves all
// regions, so that a split does not hand the same key to two writers.
type latches struct {
	mu   sync.Mutex
	held map[uint64]chan struct{}
}

func newLatches() *latches { return &latches{held: map[uint64]chan struct{}{}} }

// acquire takes the latches one by one; callers pass them sorted and without duplicates, so no two can deadlock.
func (l *latches) acquire(hashes []uint64) {
	for _, h := range hashes {
		l.acquireOne(h)
	}
}

func (l *latches) acquireOne(h uint64) {
	for {
		l.mu.Lock()
		released, busy := l.held[h]
		if !busy {
			l.held[h] = make(chan struct{})
		}
		l.mu.Unlock()
		if !busy {
			return
		}
		<-released
	}
}

func (l *latches) release(hashes []uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range hashes {
		close(l.held[h])
		delete(l.held, h)
	}
}
