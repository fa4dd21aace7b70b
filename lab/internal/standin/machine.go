package standin

import (
	"context"
	"sync"
	"time"

	"github.com/brctl/brctl/lab/internal/plant"
)

// machine is one host in real time: it drives the plant, which knows no clock, and tells the open backup streams what
// has been processed.
type machine struct {
	name  string
	epoch time.Time
	wake  chan struct{}

	mu    sync.Mutex
	plant *plant.Host
	jobs  map[*plant.Request]*job
	// stopReplay ends the load that is being replayed; nil if there was none.
	stopReplay context.CancelFunc
}

func newMachine(name string, cores, load float64) *machine {
	return &machine{
		name: name, epoch: time.Now(), wake: make(chan struct{}, 1),
		plant: plant.NewHost(cores, load), jobs: map[*plant.Request]*job{},
	}
}

// do runs f on the plant at the present and passes on what happened.
func (m *machine) do(f func(now time.Duration)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(time.Since(m.epoch))
	m.advance()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// advance lets time pass to the present. The caller holds the lock.
func (m *machine) advance() { m.deliver(m.plant.Advance(time.Since(m.epoch))) }

func (m *machine) deliver(events []plant.Event) {
	for _, e := range events {
		j := m.jobs[e.Request]
		if j == nil {
			continue
		}
		switch e.Kind {
		case plant.RegionDone:
			j.done = append(j.done, e.Region)
		case plant.RequestEnded:
			j.ended = true
			delete(m.jobs, e.Request)
		}
		select {
		case j.notify <- struct{}{}:
		default:
		}
	}
}

// run lets time pass until the context ends.
func (m *machine) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.wake:
		case <-timer.C:
		}
		timer.Reset(m.step())
	}
}

// step advances the plant and returns how long nothing will happen. It comes back at least once a second so that CPU
// counters stay fresh.
func (m *machine) step() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance()
	next, ok := m.plant.NextEvent()
	if !ok {
		return time.Second
	}
	return min(max(next-m.plant.Now(), 0), time.Second)
}

// job is one Backup request on the plant.
type job struct {
	machine *machine
	request *plant.Request
	notify  chan struct{} // capacity 1: there is news

	// Guarded by machine.mu.
	done  []int // regions processed and not yet read
	ended bool
}

// submit hands the regions of a request to a store's pool; it returns nil if the store does not run.
func (m *machine) submit(s *plant.Store, regions []int64) *job {
	j := &job{machine: m, notify: make(chan struct{}, 1)}
	m.do(func(now time.Duration) {
		if j.request = s.Request(now, regions); j.request != nil {
			m.jobs[j.request] = j
		}
	})
	if j.request == nil {
		return nil
	}
	return j
}

// news returns the regions processed since the last call, and whether no more will come.
func (j *job) news() (done []int, ended bool) {
	j.machine.mu.Lock()
	defer j.machine.mu.Unlock()
	done, j.done = j.done, nil
	return done, j.ended
}

// cancel closes the request: regions under way are finished, no other is begun.
func (j *job) cancel() {
	j.machine.do(func(now time.Duration) {
		if !j.ended {
			j.request.Cancel(now)
		}
	})
}
