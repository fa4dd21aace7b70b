package plant

import (
	"slices"
	"time"
)

// Host is one machine: cores, a business load, and the stores that share them.
type Host struct {
	cores    float64
	base     float64
	stores   []*Store
	now      time.Duration
	speed    float64
	events   []Event
	arrivals int // numbers requests
	begun    int // numbers regions begun
}

// NewHost returns a host at time 0 with so many cores, of which the business
// uses the share base (0.25 = a quarter of all cores).
func NewHost(cores, base float64) *Host {
	h := &Host{cores: cores, base: max(base, 0)}
	h.update()
	return h
}

// AddStore starts a store. Its keeper ticks at once and then at its own pace,
// so stores added at different times do not tick together.
func (h *Host) AddStore(now time.Duration, cfg StoreConfig) *Store {
	h.run(now)
	s := &Store{host: h, cfg: cfg, rule: ruleFor(cfg.Version), pace: 1}
	s.settings = cfg.Settings.Effective(s.cores())
	s.start(h.now)
	h.stores = append(h.stores, s)
	h.update()
	return s
}

// SetBase changes the business load, a share of the host's cores.
func (h *Host) SetBase(now time.Duration, base float64) {
	h.run(now)
	h.base = max(base, 0)
	h.update()
}

// Advance lets time pass to now and returns what has happened since the last
// call, in order. Calls that change something let time pass too; what happens
// then is kept for the next Advance. A now in the past counts as the present.
func (h *Host) Advance(now time.Duration) []Event {
	h.run(now)
	events := h.events
	h.events = nil
	return events
}

// NextEvent is when something will happen if nobody interferes: a region is
// done or a keeper ticks. It is false when nothing ever will.
func (h *Host) NextEvent() (time.Duration, bool) {
	at, s := h.next()
	return at, s != nil
}

// Now is the time that the host has reached.
func (h *Host) Now() time.Duration { return h.now }

// Cores is the number of cores.
func (h *Host) Cores() float64 { return h.cores }

// Base is the business load as a share of the cores.
func (h *Host) Base() float64 { return h.base }

// Speed is the factor that contention puts on everything that runs: 1 while
// the demand fits, cores ÷ demand above.
func (h *Host) Speed() float64 { return h.speed }

// Utilization is the demand for CPU as a share of the cores; above 1 there is
// contention.
func (h *Host) Utilization() float64 { return h.demand() / h.cores }

// demand is the CPU, in cores, that everybody wants.
func (h *Host) demand() float64 {
	d := h.base * h.cores
	for _, s := range h.stores {
		d += s.demand()
	}
	return d
}

// update recomputes the speed after anything that changes the demand.
func (h *Host) update() {
	h.speed = 1
	if d := h.demand(); d > h.cores {
		h.speed = h.cores / d
	}
}

// run lets time pass to now, one event after another.
func (h *Host) run(now time.Duration) {
	for {
		at, s := h.next()
		if s == nil || at > now {
			break
		}
		h.accrue(at)
		s.fire(at)
		h.update()
	}
	h.accrue(now)
}

// next finds the store that changes first.
func (h *Host) next() (at time.Duration, first *Store) {
	for _, s := range h.stores {
		if t, ok := s.nextEvent(); ok && (first == nil || t < at) {
			at, first = t, s
		}
	}
	return at, first
}

// accrue moves the clocks to now while nothing changes.
func (h *Host) accrue(now time.Duration) {
	if now <= h.now {
		return
	}
	elapsed := float64(now - h.now)
	share := h.businessShare()
	for _, s := range h.stores {
		s.accrue(elapsed, share)
	}
	h.now = now
}

// businessShare is the CPU, in cores, that the business wants from each store:
// the stores that are up carry equal parts of the host's load.
func (h *Host) businessShare() float64 {
	up := 0
	for _, s := range h.stores {
		if s.up {
			up++
		}
	}
	if up == 0 {
		return 0
	}
	return h.base * h.cores / float64(up)
}

func (h *Host) emit(e Event) {
	e.At = h.now
	h.events = append(h.events, e)
}

func sortByArrival(rs []*Request) {
	slices.SortFunc(rs, func(a, b *Request) int { return a.order - b.order })
}
