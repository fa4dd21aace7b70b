package runner_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/runner"
)

// act is one thing that a fake engine does, after a pause.
type act struct {
	after time.Duration
	event policy.AttemptEvent // sent, unless Kind is ""
	do    func()              // happens in the world, with its lock held; may be nil
}

func wait(d time.Duration) act { return act{after: d} }

func then(d time.Duration, do func()) act { return act{after: d, do: do} }

func progress(d time.Duration, ratio float64) act {
	return act{after: d, event: policy.AttemptEvent{Kind: policy.AttemptProgress, Progress: policy.Progress{Step: "Full Backup", Ratio: ratio}}}
}

// tells says what br says when it begins: its service safepoint, then its
// BackupTS, which is now.
func tells() []act {
	return []act{
		{after: time.Second, event: policy.AttemptEvent{Kind: policy.AttemptSafePoint, ServiceSafePoint: "br-0001"}},
		{event: policy.AttemptEvent{Kind: policy.AttemptBackupTS, BackupTS: backupTS()}},
	}
}

// backupTS is the first moment of every bubble, which is before any backup in
// it begins.
func backupTS() policy.TS {
	return policy.TSFromTime(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
}

// steadyScript is a backup of 16 s in which nothing goes wrong.
func steadyScript() []act {
	return append(tells(),
		act{event: policy.AttemptEvent{Kind: policy.AttemptRound, Round: 1, IncompleteRanges: 100}},
		progress(3*time.Second, 0.2),
		act{event: policy.AttemptEvent{Kind: policy.AttemptDiagnostic, Message: "a store is busy"}},
		progress(6*time.Second, 0.6), progress(6*time.Second, 1))
}

// process is a running fake engine. Ended by itself it writes an artifact. When
// the life that started it dies it lives on, silently, until it is recovered.
type process struct {
	ref     policy.ChildRef
	url     string
	alive   bool
	waited  bool
	stop    chan struct{}
	stopped bool
	kill    chan struct{} // closed by Recover
	gone    chan struct{} // closed when nothing of it is left, if its life saw that
	events  chan policy.AttemptEvent
	outcome policy.Outcome
}

// hangUp ends the processes that the journal does not know, when the life that
// was about to write them down has died. It stands for the SIGHUP that a real
// engine gets when its terminal goes with brctl: nothing else can reach them.
func (w *world) hangUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.alive() {
		p.alive = slices.Contains(w.children, p.ref)
	}
}

type fakeEngine struct{ *life }

func (f fakeEngine) Version(ctx context.Context) (string, error) {
	return f.version, f.effect(ctx, "engine.version", "")
}

func (f fakeEngine) Inspect(ctx context.Context, url string) (runner.Target, error) {
	if err := f.effect(ctx, "engine.inspect", url); err != nil {
		return runner.Target{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.artifacts[url]; ok {
		return runner.Target{State: "complete"}, nil
	}
	return runner.Target{Usable: true, State: "empty"}, nil
}

func (f fakeEngine) Prepare(run *runner.Run) (policy.Invocation, error) {
	inv := policy.Invocation{Engine: "br", Binary: "br", StorageURL: run.StorageURL,
		Args: []string{"backup", "full", fmt.Sprintf("--concurrency=%d", run.Plan.Concurrency)}}
	return inv, f.effect(context.Background(), "engine.prepare", "")
}

func (f fakeEngine) Start(ctx context.Context, inv policy.Invocation, started func(policy.ChildRef) error) (runner.Attempt, error) {
	if err := f.effect(ctx, "engine.start", ""); err != nil {
		return nil, err
	}
	p := &process{
		url: inv.StorageURL, alive: true, stop: make(chan struct{}), kill: make(chan struct{}), gone: make(chan struct{}),
		events: make(chan policy.AttemptEvent),
	}
	f.do(func() {
		if n := len(f.alive()); n > 0 {
			f.violate("an engine is started while %d live", n)
		}
		p.ref = policy.ChildRef{PID: 1000 + len(f.processes), StartTicks: 5, BootID: "boot"}
		f.processes = append(f.processes, p)
	})
	if err := started(p.ref); err != nil {
		f.do(func() { p.alive = false })
		return nil, err
	}
	go f.work(p, f.script, f.outcome)
	return fakeAttempt{f.life, p}, nil
}

// work plays the script and ends the process with outcome.
func (f fakeEngine) work(p *process, script []act, outcome policy.Outcome) {
	defer close(p.events)
	for _, a := range script {
		if o := f.play(p, a); o.Class != "" {
			f.end(p, o)
			return
		}
	}
	select {
	case <-f.died:
	default:
		f.end(p, outcome)
	}
}

// play does one act. It returns an outcome when the process was ended instead.
func (f fakeEngine) play(p *process, a act) policy.Outcome {
	events := p.events
	if a.event.Kind == "" {
		events = nil
	}
	pause := time.After(a.after)
	for {
		select {
		case <-f.died:
			return policy.Outcome{}
		case <-p.kill:
			return policy.Outcome{Class: policy.OutcomeKilled, Reason: "killed by signal 9", ExitCode: -1, Signal: "killed"}
		case <-p.stop:
			return f.stopped(p)
		case <-pause:
			pause = nil
			f.do(func() {
				if a.do != nil {
					a.do()
				}
			})
			if events == nil {
				return policy.Outcome{}
			}
		case sendIf(events, pause == nil) <- a.event:
			return policy.Outcome{}
		}
	}
}

// sendIf returns c when cond holds, and a channel that never sends otherwise.
func sendIf(c chan policy.AttemptEvent, cond bool) chan<- policy.AttemptEvent {
	if cond {
		return c
	}
	return nil
}

func (f fakeEngine) stopped(p *process) policy.Outcome {
	select {
	case <-f.died:
		return policy.Outcome{}
	case <-p.kill:
	case <-time.After(stopGrace):
	}
	return policy.Outcome{Class: policy.OutcomeTransient, Reason: "context canceled", ExitCode: 1, Stopped: true, Resumable: true}
}

func (f fakeEngine) end(p *process, o policy.Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o.Class == policy.OutcomeSuccess {
		artifact := policy.Artifact{StorageURL: p.url, BackupTS: backupTS(), ClusterID: clusterID, SizeBytes: 1 << 30, Ranges: 100, MissingStores: f.leftover.MissingStores}
		if f.leftover.ClusterID != 0 {
			artifact.ClusterID = f.leftover.ClusterID
		}
		f.artifacts[p.url] = artifact
		if o.Summary == nil {
			o.Summary = &policy.Summary{BackupTS: backupTS(), Ranges: 100, SizeBytes: 1 << 30}
		}
	}
	p.outcome, p.alive = o, false
	close(p.gone)
}

// Recover kills the process, at once.
func (f fakeEngine) Recover(ctx context.Context, ref policy.ChildRef) error {
	if err := f.effect(ctx, "engine.recover", ""); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.processes {
		if p.ref == ref && p.alive {
			p.alive = false
			close(p.kill)
		}
	}
	return nil
}

// Find knows every engine of the world, whoever has a book of it.
func (f fakeEngine) Find(ctx context.Context, _ string) ([]policy.ChildRef, error) {
	if err := f.effect(ctx, "engine.find", ""); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []policy.ChildRef
	for _, p := range f.alive() {
		out = append(out, p.ref)
	}
	return out, nil
}

// Hold knows what the scripted engine would have written into its log.
func (f fakeEngine) Hold(ctx context.Context, _ policy.Invocation) (string, error) {
	if err := f.effect(ctx, "engine.hold", ""); err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hold, nil
}

func (f fakeEngine) Confirm(ctx context.Context, url string) (policy.Artifact, error) {
	if err := f.effect(ctx, "engine.confirm", ""); err != nil {
		return policy.Artifact{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	a, ok := f.artifacts[url]
	if !ok {
		return policy.Artifact{}, fmt.Errorf("no backupmeta in %s", url)
	}
	return a, f.confirmErr
}

type fakeAttempt struct {
	*life
	p *process
}

func (a fakeAttempt) Events() <-chan policy.AttemptEvent { return a.p.events }

func (a fakeAttempt) Stop() {
	if a.effect(context.Background(), "attempt.stop", "") != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.p.stopped {
		a.p.stopped = true
		close(a.p.stop)
	}
}

func (a fakeAttempt) Wait() policy.Outcome {
	_ = a.effect(context.Background(), "attempt.wait", "")
	select {
	case <-a.p.gone:
	case <-a.died:
		return policy.Outcome{}
	}
	a.do(func() { a.p.waited = true })
	return a.p.outcome
}
