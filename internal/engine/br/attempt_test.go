package br_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/brctl/brctl/internal/engine/br"
	"github.com/brctl/brctl/internal/engine/br/brtest"
	"github.com/brctl/brctl/internal/proc"
	"github.com/brctl/brctl/pkg/policy"
)

// fixture is an engine with a fake br and an invocation for it.
type fixture struct {
	*br.Engine
	inv policy.Invocation
	dir string // target
}

func newFixture(t *testing.T, b brtest.Behaviour) fixture {
	t.Helper()
	f := fixture{Engine: br.New(br.Config{Binary: brtest.New(t, b), Grace: 20 * time.Second}), dir: filepath.Join(t.TempDir(), "full")}
	s := spec()
	s.StorageURL, s.LogDir = "local://"+f.dir, t.TempDir()
	var err error
	if f.inv, err = f.Prepare(s); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f fixture) start(t *testing.T, l br.Launch) *br.Attempt {
	t.Helper()
	a, err := f.Start(t.Context(), f.inv, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Stop(0); a.Wait() })
	return a
}

// await reads events until one of that kind comes.
func await(t *testing.T, a *br.Attempt, kind policy.AttemptEventKind) policy.AttemptEvent {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		select {
		case ev, ok := <-a.Events():
			if ev.Kind == kind {
				return ev
			}
			if !ok {
				t.Fatalf("br ended without a %s event: %+v", kind, a.Wait())
			}
		case <-timeout:
			t.Fatalf("no %s event within 20 s", kind)
		}
	}
}

func TestAWholeBackupSucceedsAndIsConfirmed(t *testing.T) {
	defer goleak.VerifyNone(t)
	f := newFixture(t, brtest.Behaviour{Duration: 300 * time.Millisecond, Stores: []uint64{1, 4}})
	var recorded policy.ChildRef
	a := f.start(t, br.Launch{OnStarted: func(r policy.ChildRef) error { recorded = r; return nil }})
	if recorded != a.Ref() || recorded.PID == 0 {
		t.Errorf("recorded %+v, runs as %+v", recorded, a.Ref())
	}
	seen := map[policy.AttemptEventKind]policy.AttemptEvent{}
	for ev := range a.Events() {
		seen[ev.Kind] = ev
	}
	o := a.Wait()
	if o.Class != policy.OutcomeSuccess || o.Summary.Ranges != 4 || o.ExitCode != 0 || o.Reason != "" || o.Resumable {
		t.Errorf("outcome %+v", o)
	}
	if seen[policy.AttemptBackupTS].BackupTS != o.BackupTS || seen[policy.AttemptSafePoint].ServiceSafePoint != o.ServiceID ||
		seen[policy.AttemptRound].IncompleteRanges != 4 || seen[policy.AttemptProgress].Progress.Ratio != 1 {
		t.Errorf("events %+v for %+v", seen, o)
	}
	got, err := f.Confirm(t.Context(), f.inv.StorageURL)
	if err != nil || got.BackupTS != o.BackupTS || got.Ranges != 4 {
		t.Errorf("artifact %+v, %v", got, err)
	}
	out, err := os.ReadFile(f.inv.OutputFile)
	if err != nil || strings.Contains(string(out), "%") || !strings.Contains(string(out), "success summary") {
		t.Errorf("%v; output without the bar wanted:\n%s", err, out)
	}
}

func TestOutcomesOfRealChildren(t *testing.T) {
	for name, tt := range map[string]struct {
		behaviour brtest.Behaviour
		class     policy.OutcomeClass
		reason    string
		check     func(policy.Outcome) bool
	}{
		"1: exit 0 and nothing there": {brtest.Behaviour{Scenario: brtest.NoBackup}, policy.OutcomeTool, "without a success summary", nil},
		"3: the error follows the summary": {
			brtest.Behaviour{Scenario: brtest.Print, Exit: 1,
				Stdout: []string{`[2022/03/05 04:48:16.700 +00:00] [INFO] [collector.go:67] ["Database backup failed summary"] [total-ranges=0]`},
				Stderr: []string{"Error: TiKV node tikv-2.example:20160 version 5.4.0 and BR v6.0.0-nightly major version mismatch: [BR:Common:ErrVersionMismatch]version mismatch"}},
			policy.OutcomePermanent, "TiKV node tikv-2.example:20160 version 5.4.0 and BR v6.0.0-nightly",
			func(o policy.Outcome) bool { return o.Code == "BR:Common:ErrVersionMismatch" }},
		"4: eight megabytes on one line": {brtest.Behaviour{Scenario: brtest.HugeLine}, policy.OutcomePermanent, "failed to put object",
			func(o policy.Outcome) bool { return len(o.Reason) < 2048 && strings.Contains(o.Hint, "AccessDenied") }},
		"13: killed by the kernel": {brtest.Behaviour{Scenario: brtest.KillSelf}, policy.OutcomeKilled, "killed by signal 9 (OOM?)",
			func(o policy.Outcome) bool {
				return o.ServiceID == "br-00000000-0000-4000-8000-000000000001" && o.Resumable && o.RetryAfter == 5*time.Minute
			}},
		"11: a child is left": {brtest.Behaviour{Scenario: brtest.LeaveChild}, policy.OutcomeTool, "",
			func(o policy.Outcome) bool { return o.EscapedChild }},
		"21: GC passed while it ran": {brtest.Behaviour{Scenario: brtest.GCPanic}, policy.OutcomePermanent, "cannot pass gc safe point check",
			func(o policy.Outcome) bool {
				return o.ExitCode == 2 && !o.Resumable && strings.Contains(o.Hint, "6m35.7s ahead")
			}},
	} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t)
			begin := time.Now()
			o := newFixture(t, tt.behaviour).start(t, br.Launch{}).Wait() // nobody reads the events
			if o.Class != tt.class || !strings.HasPrefix(o.Reason, tt.reason) && !strings.Contains(o.Reason, tt.reason) {
				t.Errorf("got %+v", o)
			}
			if tt.check != nil && !tt.check(o) {
				t.Errorf("outcome %+v", o)
			}
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestAStoppedBackupResumesWithTheSameInvocation(t *testing.T) {
	f := newFixture(t, brtest.Behaviour{Duration: 400 * time.Millisecond})
	a := f.start(t, br.Launch{})
	await(t, a, policy.AttemptBackupTS)
	a.Stop(20 * time.Second)
	first := a.Wait()
	if !first.Stopped || first.Class != policy.OutcomeTransient || !first.Resumable || first.ExitCode != 1 || !strings.Contains(first.Reason, "stopped by brctl") {
		t.Fatalf("first attempt %+v", first)
	}
	second := f.start(t, br.Launch{}).Wait()
	if second.Class != policy.OutcomeSuccess || second.BackupTS != first.BackupTS {
		t.Errorf("second attempt %+v, want a success at %v", second, first.BackupTS)
	}
	third := f.start(t, br.Launch{}).Wait()
	if third.Class != policy.OutcomeTargetInUse || third.Resumable || third.BackupTS != 0 {
		t.Errorf("third attempt %+v, want a refusal that owes nothing to the log of the others", third)
	}
}

func TestTheEndOfTheContextStopsBrInOrder(t *testing.T) {
	f := newFixture(t, brtest.Behaviour{Duration: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	a, err := f.Start(ctx, f.inv, br.Launch{})
	if err != nil {
		t.Fatal(err)
	}
	await(t, a, policy.AttemptBackupTS)
	cancel()
	if o := a.Wait(); !o.Stopped || o.ExitCode != 1 || !o.Resumable {
		t.Errorf("outcome %+v", o)
	}
}

// Case 10: whatever br does with signals, it is gone in the end.
func TestABrThatIgnoresTermIsKilled(t *testing.T) {
	a := newFixture(t, brtest.Behaviour{Scenario: brtest.IgnoreTerm}).start(t, br.Launch{})
	await(t, a, policy.AttemptBackupTS)
	a.Stop(200 * time.Millisecond)
	if o := a.Wait(); o.Class != policy.OutcomeKilled || !o.Stopped || !strings.Contains(o.Reason, "sent by brctl") {
		t.Errorf("outcome %+v", o)
	}
}

// A dead mount holds br in the kernel, where KILL does not reach it.
func TestABrThatKillDoesNotEndIsNamedAndNotContinued(t *testing.T) {
	dir := t.TempDir()
	mkdir(t, dir, "checkpoints/backup")
	checkpoint := filepath.Join(dir, "checkpoints/backup/checkpoint.meta")
	if err := os.WriteFile(checkpoint, []byte(`{"gc-service-id":"br-1","backup-ts":5}`), 0o600); err != nil {
		t.Fatal(err)
	}
	e := br.New(br.Config{Binary: "br"})
	killed := proc.Result{PID: 4711, ExitCode: -1, Stopped: true, Killed: true, SignalNo: 9, Signal: "killed"}
	if o := e.JudgeAt("local://"+dir, killed); !o.Resumable || o.BackupTS != 5 {
		t.Errorf("killed: %+v, want one to continue", o)
	}
	hung := proc.Result{PID: 4711, ExitCode: -1, Stopped: true, Killed: true, Survivors: []int{4711}}
	o := e.JudgeAt("local://"+dir, hung)
	const reason = "br (pid 4711) does not end although it was killed: it waits in the kernel, e.g. for a dead mount"
	if o.Class != policy.OutcomeKilled || o.Reason != reason || o.Resumable || o.ExitCode != -1 || !o.Stopped || o.Hint == "" {
		t.Errorf("hung: %+v", o)
	}
	if o.BackupTS != 0 {
		t.Error("hung: the dead mount was read")
	}
	if _, canResume := br.Judge(br.Report{}, hung); canResume {
		t.Error("hung: a second br may be started beside it")
	}
}

func TestAChildThatCannotBeRecordedIsNotLeftRunning(t *testing.T) {
	f := newFixture(t, brtest.Behaviour{Duration: time.Minute})
	full := errors.New("disk full")
	var ref policy.ChildRef
	_, err := f.Start(t.Context(), f.inv, br.Launch{OnStarted: func(r policy.ChildRef) error { ref = r; return full }})
	if !errors.Is(err, full) || f.Alive(ref) {
		t.Errorf("got %v, alive %v", err, f.Alive(ref))
	}
}

// Case 9: the reason of a retry is known while br waits, and in the end.
func TestWhatBrRetriesIsReportedWhileItWaits(t *testing.T) {
	f := newFixture(t, brtest.Behaviour{Scenario: brtest.Print, Hang: true, Log: []string{
		`[2021/12/31 10:00:00.000 +00:00] [WARN] [s3.go:767] ["failed to request s3, retrying"] [error="dial tcp: lookup bucket-a.192.0.2.9: no such host"] [backoff=2m4.9s]`}})
	a := f.start(t, br.Launch{})
	if ev := await(t, a, policy.AttemptDiagnostic); !strings.Contains(ev.Message, "no such host") {
		t.Errorf("event %+v", ev)
	}
	a.Stop(20 * time.Second)
	if o := a.Wait(); !strings.Contains(o.Reason, "no such host") {
		t.Errorf("outcome %+v", o)
	}
}

func TestRecoverEndsABrOfAnEarlierLife(t *testing.T) {
	f := newFixture(t, brtest.Behaviour{Scenario: brtest.IgnoreTerm})
	a := f.start(t, br.Launch{})
	await(t, a, policy.AttemptBackupTS)
	other := br.New(br.Config{Binary: "br"}) // another life knows the child's identity only
	if !other.Alive(a.Ref()) {
		t.Fatal("not alive")
	}
	var left *proc.LeftError
	if err := other.Left(a.Ref()); !errors.Is(err, proc.ErrAlive) || !errors.As(err, &left) || !slices.Contains(left.PIDs, a.Ref().PID) {
		t.Errorf("left: %v", err)
	}
	if err := other.Recover(t.Context(), a.Ref(), 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := other.Left(a.Ref()); err != nil || other.Alive(a.Ref()) {
		t.Errorf("still alive: %v", err)
	}
	if err := other.Recover(t.Context(), a.Ref(), 0); err != nil {
		t.Errorf("nothing left to end: %v", err)
	}
}

// Case 16: a br that prints everything it was given gives nothing away.
func TestSecretsOfTheEnvironmentAppearNowhere(t *testing.T) {
	f := newFixture(t, brtest.Behaviour{Scenario: brtest.EchoArgs})
	f.inv.CredentialEnv = map[string]string{"CLOUD_THING": "env"} // a name that says nothing
	t.Setenv("BR_LOG_TO_TERM", "")
	t.Setenv("UNRELATED", "inherited")
	a := f.start(t, br.Launch{Env: []string{"CLOUD_THING=SK/1+x", "BR_LOG_TO_TERM=1"}})
	var said strings.Builder
	for ev := range a.Events() {
		said.WriteString(ev.Message)
	}
	o := a.Wait()
	said.WriteString(o.Reason + o.Hint)
	for _, file := range []string{f.inv.OutputFile, f.inv.LogFile} {
		b, err := os.ReadFile(file)
		if err != nil && file == f.inv.OutputFile {
			t.Fatal(err)
		}
		said.Write(b)
	}
	if !strings.Contains(said.String(), "CLOUD_THING=<secret>") {
		t.Errorf("the fake did not get, or the filter lost, the variable: %s", said.String())
	}
	for _, not := range []string{"SK/1", "SK%2F1", "BR_LOG_TO_TERM", "inherited"} {
		if strings.Contains(said.String(), not) {
			t.Errorf("%q was let out: %s", not, said.String())
		}
	}
}

func TestVersionIsReadFromTheBinary(t *testing.T) {
	ask := func(binary string) (string, error) {
		return br.New(br.Config{Binary: binary, Timeout: 20 * time.Second}).Version(t.Context())
	}
	if v, err := ask(brtest.New(t, brtest.Behaviour{Release: "v8.5.1"})); v != "v8.5.1" || err != nil {
		t.Errorf("got %q, %v", v, err)
	}
	if _, err := ask(brtest.New(t, brtest.Behaviour{Scenario: brtest.WrongProgram})); err == nil || !strings.Contains(err.Error(), "is not br") {
		t.Errorf("another program: %v", err)
	}
	if _, err := ask("/nowhere/br"); err == nil || !strings.Contains(err.Error(), "there is no program /nowhere/br") {
		t.Errorf("missing: %v", err)
	}
	slow := filepath.Join(t.TempDir(), "br")
	if err := os.WriteFile(slow, []byte("#!/bin/sh\nexec sleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := br.New(br.Config{Binary: slow, Timeout: 100 * time.Millisecond}).Version(t.Context())
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("silent: %v", err)
	}
}

func TestTheLogIsFollowedThroughEverythingThatHappensToIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "br.log")
	write := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(text)
			_ = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	follow := func() *br.Follower {
		f, err := br.Follow(path, func(line []byte) { got = append(got, string(line)) })
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	poll := func(f *br.Follower, want string) {
		t.Helper()
		if err := f.Poll(); err != nil {
			t.Fatal(err)
		}
		if s := strings.Join(got, "|"); s != want {
			t.Fatalf("got %q, want %q", s, want)
		}
	}
	f := follow()
	poll(f, "") // no file yet
	write("one\ntw")
	poll(f, "one")
	write("o\n")
	poll(f, "one|two")
	write("three\n")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	poll(f, "one|two|three") // moved away, the next not begun
	write("four\n")
	poll(f, "one|two|three|four")
	write("five")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if s := strings.Join(got, "|"); s != "one|two|three|four|five" {
		t.Errorf("in the end %q", s)
	}
	got = nil
	f = follow() // a second attempt does not see the first one's lines
	write("\nsix\n")
	poll(f, "six")
	_ = f.Close()
}
