package proc

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// maxTailLine is how many bytes of a line are kept in Result.Tail.
const maxTailLine = 4 << 10

// Process is a started command. It is safe for concurrent use.
type Process struct {
	command Command
	cmd     *exec.Cmd
	ref     Ref
	started time.Time
	outputs []*output
	kernel  kernel
	hung    chan struct{} // closed when KILL has not ended the leader in time
	done    chan struct{} // closed when state is Exited and result is set

	mu     sync.Mutex
	state  State
	ended  bool        // the leader has ended or was given up; signals would be for nobody
	kill   *time.Timer // armed by Stop for KILL, and by KILL for giving up
	killAt time.Time
	killed bool
	tail   tail
	result Result
}

// output is our end of one stream of the child.
type output struct {
	stream Stream
	ours   *os.File
	theirs *os.File
	read   chan struct{} // closed when ours was read to its end
}

// Start starts c. The process runs until it ends by itself, Stop is called, or
// ctx ends; the end of ctx is Stop with c.Grace, never an abrupt kill. The
// caller must call Wait (or receive from Done) in the end. A missing program is
// an error that wraps fs.ErrNotExist or exec.ErrNotFound.
func Start(ctx context.Context, c Command) (*Process, error) {
	return start(ctx, c, kernel{awaitEnd: awaitZombie, killWait: killWait})
}

func start(ctx context.Context, c Command, k kernel) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, context.Cause(ctx))
	}
	c = c.withDefaults()
	p := &Process{command: c, kernel: k, hung: make(chan struct{}), done: make(chan struct{}), tail: tail{max: c.KeepLines}}
	if err := p.fork(); err != nil {
		p.closeOutputs()
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	for _, o := range p.outputs {
		go p.drain(o)
	}
	unwatch := context.AfterFunc(ctx, func() { p.Stop(c.Grace) })
	go p.wait(unwatch)
	return p, nil
}

// fork opens the streams and starts the child as leader of its own session,
// and so of its own process group.
func (p *Process) fork() error {
	// Not exec.CommandContext: it kills at once when the context ends.
	p.cmd = exec.Command(p.command.Path, p.command.Args...) //nolint:noctx // see above; ctx ends in Stop
	p.cmd.Dir = p.command.Dir
	p.cmd.Env = append([]string{}, p.command.Env...) // never nil: nil inherits ours
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := p.openStreams(); err != nil {
		return err
	}
	p.mu.Lock() // nobody else has p yet; transition asks for it
	defer p.mu.Unlock()
	p.started = time.Now()
	if err := p.cmd.Start(); err != nil {
		p.transition(Exited)
		return err
	}
	p.transition(Running)
	for _, o := range p.outputs {
		_ = o.theirs.Close() // the child has its copy; ours would keep the stream open
	}
	ref, err := refOf(p.cmd.Process.Pid)
	if err != nil {
		_ = unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL)
		_ = p.cmd.Wait()
		p.transition(Exited)
		return err
	}
	p.ref = ref
	return nil
}

func (p *Process) openStreams() error {
	var ours, theirs *os.File
	var err error
	if p.command.TTY {
		ours, theirs, err = openTTY()
		p.cmd.SysProcAttr.Setctty, p.cmd.SysProcAttr.Ctty = true, 1 // the child's descriptor 1
	} else {
		ours, theirs, err = os.Pipe()
	}
	if err != nil {
		return err
	}
	p.addOutput(Stdout, ours, theirs)
	p.cmd.Stdout = theirs
	if ours, theirs, err = os.Pipe(); err != nil {
		return err
	}
	p.addOutput(Stderr, ours, theirs)
	p.cmd.Stderr = theirs
	return nil
}

func openTTY() (ours, theirs *os.File, err error) {
	ours, theirs, err = pty.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("open a pseudo terminal: %w", err)
	}
	if err = pty.Setsize(ours, &pty.Winsize{Rows: ttyRows, Cols: ttyCols}); err != nil {
		_, _ = ours.Close(), theirs.Close()
		return nil, nil, fmt.Errorf("size a pseudo terminal: %w", err)
	}
	return ours, theirs, nil
}

func (p *Process) addOutput(s Stream, ours, theirs *os.File) {
	p.outputs = append(p.outputs, &output{stream: s, ours: ours, theirs: theirs, read: make(chan struct{})})
}

func (p *Process) closeOutputs() {
	for _, o := range p.outputs {
		_, _ = o.ours.Close(), o.theirs.Close()
	}
}

// transition moves to another state and returns whether that was allowed; the
// table is in the documentation of State. The caller holds mu.
func (p *Process) transition(to State) bool {
	if !p.state.mayBecome(to) {
		return false
	}
	p.state = to
	return true
}

// drain reads one stream to its end, whatever comes: a child whose output is
// not read stops. A terminal ends with EIO when its last holder is gone, which
// is as good an end as EOF.
func (p *Process) drain(o *output) {
	defer close(o.read)
	lines := NewLineSplitter(p.command.MaxLine, func(line []byte) { p.line(o.stream, line) })
	_, _ = io.Copy(lines, o.ours)
	lines.Flush()
}

func (p *Process) line(s Stream, line []byte) {
	p.command.OnLine(s, line)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tail.add(string(line[:min(len(line), maxTailLine)]))
}

// Ref names the process; see Alive and Terminate.
func (p *Process) Ref() Ref { return p.ref }

// State returns where the process is in its life.
func (p *Process) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// Stop asks the process group to end with TERM and kills it after grace. It
// returns at once and may be called again: TERM is not repeated (a second one
// makes br drop everything at once), but an earlier KILL counts.
func (p *Process) Stop(grace time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	at := time.Now().Add(grace)
	if p.transition(Stopping) {
		_ = signalGroup(p.ref.PID, unix.SIGTERM) // if it cannot be sent, KILL follows
		p.kill, p.killAt = time.AfterFunc(grace, p.killNow), at
		return
	}
	if p.state == Stopping && !p.killed && at.Before(p.killAt) {
		p.kill.Reset(grace)
		p.killAt = at
	}
}

func (p *Process) killNow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || p.killed {
		return
	}
	p.killed = true
	_ = signalGroup(p.ref.PID, unix.SIGKILL) // cannot fail for a child of ours
	p.kill = time.AfterFunc(p.kernel.killWait, func() { close(p.hung) })
}

// Done is closed when Wait has its answer.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait blocks until the process is gone and its output is read, and returns how
// it ended. It may be called any number of times. After Stop(grace) it returns
// within grace and about 13 seconds, whatever the process does: one that KILL
// does not end within 10 s is given up, see Result.Hung.
func (p *Process) Wait() Result {
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.result
}
