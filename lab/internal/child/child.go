// Package child runs the lab's real programs (PD, TiDB). Each has a process group of its own, so that a Ctrl-C meant for
// the lab does not reach it, and dies with the lab even when the lab is killed (Pdeathsig).
package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Spec says what to run.
type Spec struct {
	Name    string
	Path    string
	Args    []string
	Dir     string   // working directory
	Env     []string // added to the lab's own environment
	LogFile string   // stdout and stderr, appended
}

// Process is a program that can be started again after it was stopped or killed.
type Process struct {
	spec Spec

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// New describes a process; nothing runs yet.
func New(spec Spec) *Process { return &Process{spec: spec} }

// Name is the name given in the spec.
func (p *Process) Name() string { return p.spec.Name }

// spawner starts every child from one locked thread that lives as long as the lab: Pdeathsig fires when the thread that
// forked ends, not when the process does.
var spawner = sync.OnceValue(func() chan func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for job := range jobs {
			job()
		}
	}()
	return jobs
})

// Start runs the program; it is an error if it runs already.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		return fmt.Errorf("start %s: it runs already", p.spec.Name)
	}
	if err := os.MkdirAll(filepath.Dir(p.spec.LogFile), 0o755); err != nil {
		return fmt.Errorf("start %s: %w", p.spec.Name, err)
	}
	log, err := os.OpenFile(p.spec.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.spec.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(p.spec.Path, p.spec.Args...)
	cmd.Dir = p.spec.Dir
	cmd.Env = append(os.Environ(), p.spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.spec.Name, err)
	}
	done := make(chan struct{})
	p.cmd, p.done, p.err = cmd, done, nil
	go p.wait(cmd, done)
	return nil
}

func (p *Process) wait(cmd *exec.Cmd, done chan struct{}) {
	err := cmd.Wait()
	p.mu.Lock()
	p.err = err
	p.mu.Unlock()
	close(done)
}

func (p *Process) running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Exited reports whether the program has ended, and how.
func (p *Process) Exited() (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.running(), p.err
}

// Kill ends the program at once, as a crash would.
func (p *Process) Kill() error { return p.signal(syscall.SIGKILL, 10*time.Second) }

// Stop asks the program to end and kills it after the grace.
func (p *Process) Stop(grace time.Duration) error {
	err := p.signal(syscall.SIGTERM, grace)
	if errors.Is(err, errStillRuns) {
		return p.Kill()
	}
	return err
}

var errStillRuns = errors.New("it still runs")

func (p *Process) signal(sig syscall.Signal, wait time.Duration) error {
	p.mu.Lock()
	cmd, done, running := p.cmd, p.done, p.running()
	p.mu.Unlock()
	if !running {
		return nil
	}
	if err := syscall.Kill(-cmd.Process.Pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %s: %w", p.spec.Name, err)
	}
	select {
	case <-done:
		return nil
	case <-time.After(wait):
		return fmt.Errorf("stop %s: %w", p.spec.Name, errStillRuns)
	}
}
