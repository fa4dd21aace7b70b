package runner_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/brctl/brctl/pkg/runner"
)

var errInjected = errors.New("injected")

// fault is what happens instead of, or just before, an effect.
type fault func(l *life) error

func fails(*life) error { return errInjected }

func panics(*life) error { panic("injected panic") }

func cancels(cause error) fault {
	return func(l *life) error {
		l.cancel(cause)
		return nil
	}
}

func losesLease(l *life) error {
	l.loseLease()
	return nil
}

// crashes ends this life of brctl: neither this effect nor any later one
// happens, as after kill -9. Its deferred calls still run, into fakes that do
// nothing any more.
func crashes(l *life) error {
	l.die()
	runtime.Goexit()
	return nil
}

// life is one life of brctl in a world, from its start to its end or crash.
type life struct {
	*world
	cancel context.CancelCauseFunc
	died   chan struct{}
	lost   chan struct{}

	dead     bool
	isLost   bool
	first    int // index into world.log of the first effect of this life
	counts   map[string]int
	faults   map[string]fault // by effect name
	alarms   []alarm
	statuses []seen
}

func (w *world) begin(faults map[string]fault) *life {
	return &life{
		world: w, cancel: func(error) {}, died: make(chan struct{}), lost: make(chan struct{}),
		first: len(w.log), counts: map[string]int{}, faults: faults,
	}
}

func (l *life) die() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.dead {
		l.dead = true
		close(l.died)
	}
}

func (l *life) loseLease() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isLost && l.leaseOf != "" {
		l.isLost, l.leaseOf = true, "run-of-another-host"
		close(l.lost)
	}
}

// dropLease loses the lease, as a partition does, and nobody else takes it.
func (l *life) dropLease() {
	l.loseLease()
	l.do(func() { l.leaseOf = "" })
}

// effect is called by every fake before it acts. It does not return in a life
// that is over, and returns an error where the act must not happen.
func (l *life) effect(ctx context.Context, op, detail string) error {
	l.mu.Lock()
	if l.dead {
		l.mu.Unlock()
		runtime.Goexit()
	}
	l.counts[op]++
	e := effect{op: op, n: l.counts[op], detail: detail}
	f := l.faults[e.name()]
	if f == nil {
		l.log = append(l.log, e)
	}
	l.mu.Unlock()
	if f != nil {
		err := f(l)
		l.do(func() { l.log = append(l.log, effect{e.op, e.n, detail + " (fault)"}) })
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// alarm is something that happens a while after a run began.
type alarm struct {
	after time.Duration
	ring  func()
}

// later has f called a while after run begins.
func (l *life) later(after time.Duration, f func()) { l.alarms = append(l.alarms, alarm{after, f}) }

// run drives run to its end in this life. It returns false when the life ended
// first.
func (l *life) run(req runner.Request, run *runner.Run) (survived bool, err error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	l.cancel = cancel
	for _, a := range l.alarms {
		defer time.AfterFunc(a.after, a.ring).Stop()
	}
	return l.live(func() { err = runner.New(l.deps(), req).Run(ctx, run) }), err
}

// recover finishes in this life what earlier ones left.
func (l *life) recover(req runner.Request) (survived bool, warnings []string, err error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	l.cancel = cancel
	return l.live(func() { warnings, err = runner.Recover(ctx, l.deps(), req, clusterID) }), warnings, err
}

func (l *life) live(f func()) (survived bool) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		f()
		survived = true
	}()
	<-over
	return survived
}

func (l *life) deps() runner.Deps {
	return runner.Deps{
		Topology: fakeTopology{l}, Settings: fakeSettings{l}, Gauges: fakeGauges{l}, SafePoints: fakeSafePoints{l}, Protect: protect,
		Leaser: l.takeLease, Journal: fakeJournal{l}, Engine: fakeEngine{l}, Records: fakeRecords{l}, Same: l.same, Now: time.Now,
		Observe: l.observe,
		Reached: func(point string) { _ = l.effect(context.Background(), "point", point) },
	}
}

// seen is a status with the moment it was shown.
type seen struct {
	runner.Status
	At time.Time
}

// observe is called by one goroutine at a time: the run's own.
func (l *life) observe(s runner.Status) {
	if l.effect(context.Background(), "observe", s.Note) == nil {
		l.statuses = append(l.statuses, seen{s, time.Now()})
	}
}

// effects returns what this life did, in order.
func (l *life) effects() []effect {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.log[l.first:])
}
