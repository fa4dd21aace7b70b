package proc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brctl/brctl/internal/proc"
)

func TestAliveKnowsAProcessByItsStartAndBootNotOnlyItsID(t *testing.T) {
	r := newRecorder()
	p := start(t, command("ignore-term", r))
	r.await(t, "ready")
	ref := p.Ref()
	if !proc.Alive(ref) {
		t.Fatalf("%+v is not alive", ref)
	}
	for name, other := range map[string]proc.Ref{
		"another start": {PID: ref.PID, StartTicks: ref.StartTicks + 1, BootID: ref.BootID},
		"another boot":  {PID: ref.PID, StartTicks: ref.StartTicks, BootID: "00000000-0000-4000-8000-000000000001"},
		"nothing":       {},
	} {
		if proc.Alive(other) {
			t.Errorf("%s: %+v counts as alive", name, other)
		}
		if err := proc.Terminate(t.Context(), other, 0); err != nil {
			t.Errorf("%s: terminate: %v", name, err)
		}
	}
	if !proc.Alive(ref) {
		t.Error("a ref that is not ours was signalled")
	}
	p.Stop(0)
	p.Wait()
	if proc.Alive(ref) {
		t.Error("alive after its end")
	}
}

// startForeign starts a role as another life would have: nothing in this
// process waits for it.
func startForeign(t *testing.T, role string) proc.Ref {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{childEnv + "=" + role}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	ref, err := proc.RefOf(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func TestTerminateEndsAProcessOfAnEarlierLife(t *testing.T) {
	for role, minimum := range map[string]time.Duration{"exit-on-term": 0, "ignore-term": 200 * time.Millisecond} {
		t.Run(role, func(t *testing.T) {
			ref := startForeign(t, role)
			begin := time.Now()
			if err := proc.Terminate(t.Context(), ref, 200*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if proc.Alive(ref) {
				t.Error("still alive")
			}
			if took := time.Since(begin); took < minimum {
				t.Errorf("killed after %v, before the grace time", took)
			}
		})
	}
}

func TestTerminateGivesUpWaitingWhenItsContextEnds(t *testing.T) {
	ref := startForeign(t, "ignore-term")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := proc.Terminate(ctx, ref, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
}

func TestAGroupWithoutItsLeaderIsReportedAndNotKilled(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{childEnv + "=leave-child"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stderr = os.Stderr // a file, which the orphan may hold without holding us
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(strings.TrimPrefix(string(out), "child "), &pid); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	self, err := proc.RefOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	ref := proc.Ref{PID: cmd.Process.Pid, StartTicks: 1, BootID: self.BootID}
	err = proc.Terminate(t.Context(), ref, 0)
	if !errors.Is(err, proc.ErrOrphans) || !strings.Contains(err.Error(), fmt.Sprint(pid)) {
		t.Errorf("got %v, want the orphan %d named", err, pid)
	}
	if gone(t, pid) {
		t.Error("the orphan was killed without proof that it is ours")
	}
}

// Killed while one thread cannot be interrupted: the first thread shows Z, as
// that of a process that is gone does.
func TestAProcessWhoseFirstThreadEndedIsAlive(t *testing.T) {
	ref := startForeign(t, "first-thread-ends")
	line := func() string {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", ref.PID))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(line(), ") Z "); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) { // /proc has no event for it
			t.Fatalf("its first thread does not end: %s", line())
		}
	}
	if !proc.Alive(ref) {
		t.Error("counts as dead")
	}
	if err := proc.Terminate(t.Context(), ref, 0); err != nil {
		t.Fatal(err)
	}
	if proc.Alive(ref) {
		t.Error("alive after its end")
	}
}

// runAsParent is a first life of a program: it starts a child and is killed.
func runAsParent() {
	p, err := proc.Start(context.Background(), proc.Command{
		Path: os.Args[0], Env: []string{childEnv + "=exit-on-term"}, TTY: true,
		OnLine: func(_ proc.Stream, line []byte) {
			if string(line) == "ready" {
				fmt.Println("child is ready")
			}
		}})
	if err != nil {
		panic(err)
	}
	b, err := json.Marshal(p.Ref())
	if err != nil {
		panic(err)
	}
	fmt.Printf("ref %s\n", b)
	p.Wait()
}

func TestAChildOnATerminalGetsHUPWhenWeAreKilled(t *testing.T) {
	r := newRecorder()
	p := start(t, command("parent", r))
	var ref proc.Ref
	if err := json.Unmarshal([]byte(r.await(t, "ref ")), &ref); err != nil {
		t.Fatal(err)
	}
	r.await(t, "child is ready")
	if !proc.Alive(ref) {
		t.Fatal("the child does not run")
	}
	if err := syscall.Kill(p.Ref().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.Wait()
	deadline := time.Now().Add(10 * time.Second)
	for proc.Alive(ref) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(ref.PID, syscall.SIGKILL)
			t.Fatal("the child outlived its parent by 10 s")
		}
		time.Sleep(5 * time.Millisecond) // not our child: there is nothing to wait on
	}
}
