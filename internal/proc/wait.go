package proc

import (
	"context"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kernel is what a process is waited for with. Tests replace it to play a
// process that KILL does not end.
type kernel struct {
	awaitEnd func(pid int) // blocks until pid has ended and does not reap it
	killWait time.Duration // from KILL until the process is given up
}

// wait is the only waiter. It lets the leader lie as a zombie while it looks
// for what the leader left behind: so its id, which is also that of the group,
// cannot have been given to anybody else when the group is killed. The same
// holds for a leader that was given up: it is not reaped either.
func (p *Process) wait(unwatch func() bool) {
	defer close(p.done)
	gone, limit := p.watchLeader(), killWait
	select {
	case <-gone:
	case <-p.hung:
		limit = lastLook // all of its group had their time after KILL
	}
	unwatch()
	ended, stopped := p.leaderEnded()
	// Nobody is left to ask; the wait for KILL is bounded inside.
	escaped, survivors, _ := killSession(context.Background(), p.cmd.Process.Pid, limit)
	cut := p.awaitOutput(drainWait)

	p.mu.Lock()
	defer p.mu.Unlock()
	p.transition(Exited)
	p.result = Result{
		PID: p.cmd.Process.Pid, ExitCode: -1, Stopped: stopped, Killed: p.killed,
		Escaped: escaped, Survivors: survivors, Cut: cut, StartedAt: p.started, EndedAt: ended,
	}
	select {
	case <-gone:
		p.reap()
	default:
		p.giveUp(gone)
	}
	for _, line := range p.tail.lines {
		p.result.Tail = append(p.result.Tail, p.command.redact(line))
	}
}

// watchLeader returns a channel that is closed when the leader has ended. The
// system call behind it cannot be interrupted: of a leader that is given up the
// goroutine lives on until the kernel lets go of it.
func (p *Process) watchLeader() <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		p.kernel.awaitEnd(p.cmd.Process.Pid)
	}()
	return gone
}

// reap takes the leader's status. The caller holds mu.
func (p *Process) reap() {
	_ = p.cmd.Wait() // the status is read below; streams are files, so there is nothing else to fail
	p.result.ExitCode = p.cmd.ProcessState.ExitCode()
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		p.result.Signal, p.result.SignalNo = ws.Signal().String(), int(ws.Signal())
	}
}

// giveUp records a leader that does not end and leaves a goroutine behind that
// reaps it should it end after all. The caller holds mu.
func (p *Process) giveUp(gone <-chan struct{}) {
	isLeader := func(pid int) bool { return pid == p.result.PID }
	p.result.Escaped = slices.DeleteFunc(p.result.Escaped, isLeader)
	others := slices.DeleteFunc(p.result.Survivors, isLeader)
	p.result.Survivors = append([]int{p.result.PID}, others...)
	go func() {
		<-gone
		_ = p.cmd.Wait() // nobody asks for the status any more
	}()
}

// leaderEnded turns off everything that would signal the leader, and returns
// when that was and whether it had been asked to stop before.
func (p *Process) leaderEnded() (at time.Time, stopped bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.kill != nil {
		p.kill.Stop()
	}
	return time.Now(), p.state == Stopping
}

// awaitZombie blocks until pid, a child of ours, has ended, and does not reap
// it.
func awaitZombie(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

// awaitOutput waits until all output is read, at most limit, and then closes
// our ends. It reports whether reading had to be cut.
func (p *Process) awaitOutput(limit time.Duration) (cut bool) {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for _, o := range p.outputs {
		select {
		case <-o.read:
		case <-timeout.C:
			cut = true
			timeout.Reset(0) // the others get no time of their own
		}
		_ = o.ours.Close() // ends a read that is still going on
		<-o.read
	}
	return cut
}
