package proc_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/brctl/brctl/internal/proc"
)

// recorder remembers the lines of a child.
type recorder struct {
	mu    sync.Mutex
	lines []string
	seen  chan string
}

func newRecorder() *recorder { return &recorder{seen: make(chan string, 1000)} }

func (r *recorder) line(_ proc.Stream, b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, string(b))
	r.seen <- string(b)
}

// await returns the rest of the first line that begins with prefix.
func (r *recorder) await(t *testing.T, prefix string) string {
	t.Helper()
	for {
		select {
		case line := <-r.seen:
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				return strings.TrimSpace(rest)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no line with %q within 20 s", prefix)
		}
	}
}

func command(role string, r *recorder) proc.Command {
	return proc.Command{Path: os.Args[0], Env: []string{childEnv + "=" + role}, OnLine: r.line}
}

func start(t *testing.T, c proc.Command) *proc.Process {
	t.Helper()
	p, err := proc.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(0); p.Wait() })
	return p
}

func gone(t *testing.T, pid int) bool {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(b), ") Z ")
}

func TestExitCodeSignalAndLinesAreReported(t *testing.T) {
	defer goleak.VerifyNone(t)
	r := newRecorder()
	p, err := proc.Start(t.Context(), proc.Command{
		Path: "/bin/sh", Args: []string{"-c", `printf 'one\ntwo\rthree'; echo no >&2; exit 7`}, OnLine: r.line})
	if err != nil {
		t.Fatal(err)
	}
	res := p.Wait()
	if res.ExitCode != 7 || res.Signal != "" || res.Stopped || res.Killed || res.Cut {
		t.Errorf("result %+v, want a plain exit 7", res)
	}
	for _, want := range []string{"one", "two", "three", "no"} {
		if !strings.Contains(strings.Join(r.lines, "|"), want) {
			t.Errorf("lines %q lack %q", r.lines, want)
		}
	}
	if p.State() != proc.Exited {
		t.Errorf("state %v, want exited", p.State())
	}
}

func TestAMissingProgramIsAnErrorThatSaysSo(t *testing.T) {
	_, err := proc.Start(t.Context(), proc.Command{Path: "/nowhere/br"})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absolute path: %v", err)
	}
	_, err = proc.Start(t.Context(), proc.Command{Path: "no-such-program-here"})
	if !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("name: %v", err)
	}
}

func TestAChildKilledByASignalIsNamed(t *testing.T) {
	res := start(t, command("kill-self", newRecorder())).Wait()
	if res.ExitCode != -1 || res.SignalNo != 9 || res.Signal != "killed" || res.Stopped || res.Killed {
		t.Errorf("result %+v, want signal 9 that is not ours", res)
	}
}

func TestStopSendsTermAndTheChildMayEndInItsOwnWay(t *testing.T) {
	r := newRecorder()
	p := start(t, command("exit-on-term", r))
	r.await(t, "ready")
	p.Stop(time.Minute)
	res := p.Wait()
	if res.ExitCode != 3 || !res.Stopped || res.Killed {
		t.Errorf("result %+v, want exit 3, stopped, not killed", res)
	}
}

func TestAChildThatIgnoresTermIsKilledAfterTheGraceTime(t *testing.T) {
	r := newRecorder()
	p := start(t, command("ignore-term", r))
	r.await(t, "ready")
	begin := time.Now()
	p.Stop(300 * time.Millisecond)
	if got := p.State(); got != proc.Stopping {
		t.Errorf("state %v, want stopping", got)
	}
	res := p.Wait()
	if !res.Killed || !res.Stopped || res.SignalNo != 9 {
		t.Errorf("result %+v, want killed by us", res)
	}
	if took := time.Since(begin); took < 300*time.Millisecond || took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

// A br whose target is on a dead mount does not die of KILL. Nobody may wait
// for it for ever.
func TestAProcessThatKillDoesNotEndIsGivenUp(t *testing.T) {
	before := goleak.IgnoreCurrent()
	r, release := newRecorder(), make(chan struct{})
	c := command("ignore-term", r)
	p, err := proc.StartHung(t.Context(), c, release, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	r.await(t, "ready")
	begin := time.Now()
	p.Stop(50 * time.Millisecond)
	res := p.Wait()
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	if !res.Hung() || !res.Killed || !res.Stopped || res.ExitCode != -1 || res.SignalNo != 0 || res.PID != p.Ref().PID {
		t.Errorf("result %+v, want a hung process, killed by us, with no end of its own", res)
	}
	if diff := cmp.Diff([]int{p.Ref().PID}, res.Survivors); diff != "" || len(res.Escaped) > 0 {
		t.Errorf("escaped %v, survivors (-want +got):\n%s", res.Escaped, diff)
	}
	if len(res.Tail) != 1 || p.State() != proc.Exited {
		t.Errorf("tail %q, state %v", res.Tail, p.State())
	}
	p.Stop(0) // nothing to do, and no panic
	close(release)
	goleak.VerifyNone(t, before) // it is reaped when the kernel lets go of it
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", res.PID)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("not reaped: %v", err)
	}
}

func TestAProcessThatEndsInTheLastMomentIsNotGivenUp(t *testing.T) {
	r, release := newRecorder(), make(chan struct{})
	c := command("leave-child-own-session", r) // its output is held open: 2 s for the end to arrive
	p, err := proc.StartHung(t.Context(), c, release, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(r.await(t, "child "), &pid); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	p.Stop(0)
	time.AfterFunc(500*time.Millisecond, func() { close(release) })
	if res := p.Wait(); res.Hung() || len(res.Survivors) > 0 {
		t.Errorf("result %+v, want an end", res)
	}
}

func TestAShorterGraceTimeCountsAndALongerOneDoesNot(t *testing.T) {
	r := newRecorder()
	p := start(t, command("ignore-term", r))
	r.await(t, "ready")
	p.Stop(time.Hour)
	p.Stop(100 * time.Millisecond)
	p.Stop(time.Hour)
	if res := p.Wait(); !res.Killed {
		t.Errorf("result %+v, want killed", res)
	}
}

func TestTheEndOfTheContextStopsWithGrace(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := newRecorder()
	c := command("exit-on-term", r)
	c.Grace = time.Minute
	p, err := proc.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	r.await(t, "ready")
	cancel()
	if res := p.Wait(); res.ExitCode != 3 || !res.Stopped || res.Killed {
		t.Errorf("result %+v, want the child's own exit after TERM", res)
	}
}

// Case 11: what a wrapper leaves behind is found, killed and reported.
func TestChildrenThatOutliveTheLeaderAreKilledAndReported(t *testing.T) {
	for _, role := range []string{"leave-child", "leave-child-own-group"} {
		t.Run(role, func(t *testing.T) {
			r := newRecorder()
			p := start(t, command(role, r))
			var pid int
			if _, err := fmt.Sscan(r.await(t, "child "), &pid); err != nil {
				t.Fatal(err)
			}
			res := p.Wait()
			if diff := cmp.Diff([]int{pid}, res.Escaped); diff != "" {
				t.Errorf("escaped (-want +got):\n%s", diff)
			}
			if len(res.Survivors) > 0 || !gone(t, pid) {
				t.Errorf("survivors %v; child gone: %v", res.Survivors, gone(t, pid))
			}
			if res.ExitCode != 0 {
				t.Errorf("exit code %d, want the leader's own 0", res.ExitCode)
			}
		})
	}
}

// Case 11: a wrapper that passes no signals on does not shield its child.
func TestStopReachesTheChildOfAWrapper(t *testing.T) {
	r := newRecorder()
	c := command("wrap", r)
	p := start(t, c)
	for members(t, p.Ref().PID) < 2 {
		time.Sleep(5 * time.Millisecond) // until the wrapper has forked; /proc has no event for it
	}
	p.Stop(200 * time.Millisecond)
	p.Wait()
	if n := members(t, p.Ref().PID); n != 0 {
		t.Errorf("%d processes of the group are left", n)
	}
}

// members counts the living processes in the session that pid leads.
func members(t *testing.T, pid int) int {
	t.Helper()
	out, err := exec.Command("sh", "-c", fmt.Sprintf(
		`cat /proc/[0-9]*/stat 2>/dev/null | sed 's/^.*) //' | awk '$4 == %d && $1 != "Z"' | wc -l`, pid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if _, err := fmt.Sscan(string(out), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAStrangerWhoHoldsTheOutputDoesNotHoldUs(t *testing.T) {
	for _, tty := range []bool{false, true} {
		t.Run(fmt.Sprintf("tty=%v", tty), func(t *testing.T) {
			defer goleak.VerifyNone(t)
			r := newRecorder()
			c := command("leave-child-own-session", r)
			c.TTY = tty
			p, err := proc.Start(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			var pid int
			if _, err := fmt.Sscan(r.await(t, "child "), &pid); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
			begin := time.Now()
			if res := p.Wait(); !res.Cut {
				t.Errorf("result %+v, want cut output", res)
			}
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("held for %v", took)
			}
		})
	}
}

// Case 4: one line of 8 MiB neither blocks the child nor fills our memory.
func TestALineOfMegabytesIsReadToItsEndAndCut(t *testing.T) {
	for _, tty := range []bool{false, true} {
		r := newRecorder()
		c := command("long-line", r)
		c.TTY, c.MaxLine = tty, 2048
		res := start(t, c).Wait()
		if res.ExitCode != 1 {
			t.Errorf("exit code %d, want 1", res.ExitCode)
		}
		if len(r.lines) != 2 || len(r.lines[0]) != 2048 || r.lines[1] != "Error: AccessDenied" {
			t.Errorf("%d lines, want a cut one and the error after it", len(r.lines))
		}
	}
}

func TestTheChildGetsTheGivenEnvironmentAndNothingElse(t *testing.T) {
	t.Setenv("BR_LOG_TO_TERM", "1")
	t.Setenv("TZ", "Asia/Shanghai")
	r := newRecorder()
	c := command("environment", r)
	c.Env = append(c.Env, proc.CleanEnv([]string{"TZ", "NOT_SET_ANYWHERE", "TZ"})...)
	start(t, c).Wait()
	want := []string{childEnv + "=environment", "TZ=Asia/Shanghai"}
	if diff := cmp.Diff(want, r.lines); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestWithATerminalStandardOutputIsOneOfTheGivenSize(t *testing.T) {
	r := newRecorder()
	c := proc.Command{Path: "/bin/sh", OnLine: r.line, TTY: true,
		Args: []string{"-c", `test -t 1 && echo out is tty; test -t 2 || echo err is not; stty size </dev/tty`}}
	start(t, c).Wait()
	want := []string{"out is tty", "err is not", "40 120"}
	if diff := cmp.Diff(want, r.lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStringAndTailAreRedactedAndBounded(t *testing.T) {
	c := proc.Command{Path: "/bin/sh", Args: []string{"-c", `for i in 1 2 3 4; do echo $i SECRET; done`, "it's"},
		KeepLines: 2, Redact: func(s string) string { return strings.ReplaceAll(s, "SECRET", "<secret>") }}
	const want = `/bin/sh -c 'for i in 1 2 3 4; do echo $i <secret>; done' 'it'\''s'`
	if got := c.String(); got != want {
		t.Errorf("String()\n got %s\nwant %s", got, want)
	}
	res := start(t, c).Wait()
	if diff := cmp.Diff([]string{"3 <secret>", "4 <secret>"}, res.Tail); diff != "" {
		t.Errorf("tail (-want +got):\n%s", diff)
	}
}
