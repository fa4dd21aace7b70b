package br

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/brctl/brctl/internal/proc"
	"github.com/brctl/brctl/pkg/policy"
)

// pollLog is how often br's log is read while it runs.
const pollLog = 250 * time.Millisecond

// maxEvents is how many events wait for a reader before the oldest is dropped.
// Nothing is lost that matters: the outcome repeats what counts.
const maxEvents = 256

// Launch is what one attempt needs besides the frozen invocation.
type Launch struct {
	// Env holds NAME=value for br, among them the values of
	// Invocation.CredentialEnv, which are hidden in everything that is kept.
	Env []string
	// OnStarted, when set, is called with the child's identity right after the
	// fork and before Start returns. br takes seconds before it writes
	// anything, so the caller can record the child first. On an error the child
	// is killed and Start fails.
	OnStarted func(policy.ChildRef) error
}

// Attempt is one started br. Its reader goroutines end with it.
type Attempt struct {
	engine   *Engine
	inv      policy.Invocation
	process  *proc.Process
	parser   *Parser
	output   *outputFile
	log      *follower
	redactor *redactor
	events   chan policy.AttemptEvent
	done     chan struct{}
	outcome  policy.Outcome // set before done is closed
}

// Start starts an attempt on a pseudo terminal: br then reports progress every
// second instead of every two minutes, and gets a HUP, which it treats as a
// TERM, if we die. The end of ctx is Stop with the configured grace time. The
// caller must call Wait in the end.
func (e *Engine) Start(ctx context.Context, inv policy.Invocation, l Launch) (*Attempt, error) {
	a := &Attempt{
		engine: e, inv: inv, redactor: e.redactor.withValues(secretValues(inv, l.Env)),
		events: make(chan policy.AttemptEvent, maxEvents), done: make(chan struct{}),
	}
	a.parser = NewParser(a.emit)
	if err := a.openFiles(); err != nil {
		return nil, fmt.Errorf("start br: %w", err)
	}
	if err := a.launch(ctx, l); err != nil {
		return nil, errors.Join(fmt.Errorf("start br: %w", err), a.closeFiles())
	}
	go a.run()
	return a, nil
}

func (a *Attempt) openFiles() error {
	if err := os.MkdirAll(filepath.Dir(a.inv.LogFile), 0o750); err != nil {
		return fmt.Errorf("make log directory: %w", err)
	}
	var err error
	if a.output, err = openOutput(a.inv.OutputFile, a.redactor.redact); err != nil {
		return err
	}
	a.log, err = follow(a.inv.LogFile, func(line []byte) { a.parser.Line(FromLog, line) })
	if err != nil {
		return errors.Join(err, a.output.close())
	}
	return nil
}

func (a *Attempt) closeFiles() error { return errors.Join(a.log.close(), a.output.close()) }

// launch forks and lets the caller record the child.
func (a *Attempt) launch(ctx context.Context, l Launch) error {
	process, err := proc.Start(ctx, proc.Command{
		Path: a.inv.Binary, Args: a.inv.Args, Env: a.engine.environment(l.Env), TTY: true,
		OnLine: a.line, Grace: a.engine.config.Grace, Redact: a.redactor.redact,
	})
	if err != nil {
		return err
	}
	a.process = process
	if l.OnStarted == nil {
		return nil
	}
	if err := l.OnStarted(a.Ref()); err != nil {
		process.Stop(0)
		if res := process.Wait(); res.Hung() {
			err = fmt.Errorf("%w; %s", err, hangs(res))
		}
		return fmt.Errorf("record the child: %w", err)
	}
	return nil
}

// line takes what br prints. Redraws of the progress bar are not kept.
func (a *Attempt) line(s proc.Stream, line []byte) {
	if s == proc.Stderr {
		a.parser.Line(FromStderr, line)
		a.output.line(line)
		return
	}
	a.parser.Line(FromStdout, line)
	if _, isBar := parseBar(stripANSI(line[:min(len(line), maxText)])); !isBar {
		a.output.line(line)
	}
}

// emit queues an event and drops the oldest when nobody reads: br must never
// wait for us.
func (a *Attempt) emit(ev policy.AttemptEvent) {
	ev.Message = a.redactor.redact(ev.Message)
	for {
		select {
		case a.events <- ev:
			return
		default:
		}
		select {
		case <-a.events:
		default:
		}
	}
}

// run follows the log until br is gone, then judges.
func (a *Attempt) run() {
	defer close(a.done)
	tick := time.NewTicker(pollLog)
	defer tick.Stop()
	broken := false // the log cannot be read: one report is enough
	for ended := false; !ended; {
		select {
		case <-tick.C:
			broken = broken || a.report(a.log.poll())
		case <-a.process.Done():
			ended = true
		}
	}
	a.report(a.closeFiles())
	a.outcome = a.judge(a.process.Wait())
	close(a.events)
}

// report makes a fault of our own files, which must not end a backup, known to
// who watches. It returns whether there was one.
func (a *Attempt) report(err error) bool {
	if err != nil {
		a.emit(policy.AttemptEvent{Kind: policy.AttemptDiagnostic, Message: bounded(err.Error())})
	}
	return err != nil
}

// judge decides the outcome, adding what br left at its target.
func (a *Attempt) judge(res proc.Result) policy.Outcome {
	o, canResume := a.engine.judge.outcome(a.parser.Report(), res)
	o.Reason, o.Hint = bounded(a.redactor.redact(o.Reason)), bounded(a.redactor.redact(o.Hint))
	if o.Class == policy.OutcomeSuccess || res.Hung() { // a mount on which br hangs does not answer us either
		return o
	}
	// br is gone; looking at the target is bounded by the engine's own timeout.
	if cp, err := a.engine.ReadCheckpoint(context.Background(), a.inv.StorageURL); err == nil {
		resumable(&o, cp, canResume)
	}
	return o
}

// resumable adds what a checkpoint at the target says.
func resumable(o *policy.Outcome, cp Checkpoint, allowed bool) {
	o.ServiceID = cmp.Or(o.ServiceID, cp.ServiceID)
	o.BackupTS = cmp.Or(o.BackupTS, cp.BackupTS)
	o.Resumable = allowed
	if o.Resumable && o.Class == policy.OutcomeKilled {
		o.RetryAfter = lockLife // it could not take its lock off
	}
}

// Ref identifies the child across our own death.
func (a *Attempt) Ref() policy.ChildRef { return childRef(a.process.Ref()) }

// Events returns what br reports. The channel holds the newest events, is never
// waited for, and is closed when br is gone.
func (a *Attempt) Events() <-chan policy.AttemptEvent { return a.events }

// Stop asks br to end and kills it after grace. It returns at once; Wait
// returns the outcome. Calling it again can only shorten the grace time.
func (a *Attempt) Stop(grace time.Duration) { a.process.Stop(grace) }

// Done is closed when Wait has its answer.
func (a *Attempt) Done() <-chan struct{} { return a.done }

// Wait blocks until br is gone and returns how it ended. After Stop(grace) it
// returns within grace and about a minute: 13 s for a br that not even KILL
// ends, which is given up with the class killed and not resumable (Left then
// tells when it is gone), else up to Config.Timeout for a look at the target.
func (a *Attempt) Wait() policy.Outcome {
	<-a.done
	return a.outcome
}

// Command renders what an invocation runs, for people, without secrets.
func (e *Engine) Command(inv policy.Invocation) string {
	return proc.Command{Path: inv.Binary, Args: inv.Args, Redact: e.Redact}.String()
}

// secretValues returns the values of the variables that carry credentials.
func secretValues(inv policy.Invocation, env []string) []string {
	var values []string
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if _, ok := inv.CredentialEnv[name]; ok {
			values = append(values, value)
		}
	}
	return values
}
