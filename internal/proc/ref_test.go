package proc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
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

// Whoever has less time than the grace time must not leave a process behind
// that ignored TERM.
func TestTerminateKillsBeforeItsContextEnds(t *testing.T) {
	ref := startForeign(t, "ignore-term")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := proc.Terminate(ctx, ref, time.Hour); err != nil {
		t.Error(err)
	}
	if proc.Alive(ref) || ctx.Err() != nil {
		t.Errorf("alive %v, context %v", proc.Alive(ref), ctx.Err())
	}
}

func TestTerminateKillsAtOnceWhenItsContextIsCanceled(t *testing.T) {
	ref := startForeign(t, "ignore-term")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	begin := time.Now()
	if err := proc.Terminate(ctx, ref, time.Hour); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); proc.Alive(ref) || took < 100*time.Millisecond {
		t.Errorf("alive %v after %v", proc.Alive(ref), took)
	}
}

func TestTerminateTouchesNothingWhenItsContextIsDone(t *testing.T) {
	ref := startForeign(t, "exit-on-term")
	ctx, cancel := context.WithCancelCause(t.Context())
	shutDown := errors.New("shutting down")
	cancel(shutDown)
	if err := proc.Terminate(ctx, ref, 0); !errors.Is(err, shutDown) {
		t.Errorf("got %v, want the context's cause", err)
	}
	if !proc.Alive(ref) {
		t.Error("it was signalled")
	}
}

func TestTheGraceTimeLeavesTimeForKill(t *testing.T) {
	for _, tt := range []struct{ left, grace, want time.Duration }{
		{0, time.Minute, time.Minute}, // no deadline
		{2 * time.Minute, 5 * time.Minute, 110 * time.Second},
		{2 * time.Minute, time.Minute, time.Minute},
		{20 * time.Second, time.Minute, 10 * time.Second},
		{4 * time.Second, time.Minute, 2 * time.Second},
		{time.Hour, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			if tt.left > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tt.left)
				defer cancel()
			}
			if got := proc.GraceWithin(ctx, tt.grace); got != tt.want {
				t.Errorf("%v of %v: got %v, want %v", tt.grace, tt.left, got, tt.want)
			}
		})
	}
}

func TestLeftNamesTheProcessWhileItLives(t *testing.T) {
	r := newRecorder()
	p := start(t, command("wrap", r))
	ref := p.Ref()
	for members(t, ref.PID) < 2 {
		time.Sleep(5 * time.Millisecond) // until the wrapper has forked; /proc has no event for it
	}
	var left *proc.LeftError
	if err := proc.Left(ref); !errors.Is(err, proc.ErrAlive) || errors.Is(err, proc.ErrOrphans) || !errors.As(err, &left) {
		t.Fatalf("got %v, want it alive", err)
	}
	if len(left.PIDs) != 2 || left.PIDs[0] != ref.PID || left.Ref != ref {
		t.Errorf("left %+v, want %d and its child", left, ref.PID)
	}
	for name, other := range map[string]proc.Ref{
		"another start": {PID: ref.PID, StartTicks: ref.StartTicks + 1, BootID: ref.BootID},
		"another boot":  {PID: ref.PID, StartTicks: ref.StartTicks, BootID: "00000000-0000-4000-8000-000000000001"},
		"nothing":       {},
	} {
		if err := proc.Left(other); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	p.Stop(0)
	p.Wait()
	if err := proc.Left(ref); err != nil {
		t.Errorf("after the end: %v", err)
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
	for name, err := range map[string]error{"left": proc.Left(ref), "terminate": proc.Terminate(t.Context(), ref, 0)} {
		var left *proc.LeftError
		if !errors.Is(err, proc.ErrOrphans) || errors.Is(err, proc.ErrAlive) || !strings.Contains(err.Error(), fmt.Sprint(pid)) {
			t.Errorf("%s: got %v, want the orphan %d named", name, err, pid)
		}
		if !errors.As(err, &left) || !slices.Equal(left.PIDs, []int{pid}) {
			t.Errorf("%s: got %+v", name, left)
		}
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
