//go:build system

package br_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brctl/brctl/internal/engine/br"
	"github.com/brctl/brctl/pkg/policy"
)

// labEnv names the directory of a running lab: real PD, TiDB and br.
const labEnv = "BRCTL_TEST_LAB"

type lab struct {
	PDEndpoints []string `json:"pd_endpoints"`
	BRPath      string   `json:"br_path"`
}

func openLab(t *testing.T) (lab, *br.Engine) {
	t.Helper()
	dir := os.Getenv(labEnv)
	if dir == "" {
		t.Skip("skip: " + labEnv + " names no running lab")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "lab.json"))
	if err != nil {
		t.Fatal(err)
	}
	var l lab
	if err := json.Unmarshal(raw, &l); err != nil {
		t.Fatal(err)
	}
	return l, br.New(br.Config{Binary: l.BRPath})
}

func (l lab) prepare(t *testing.T, e *br.Engine, url string) policy.Invocation {
	t.Helper()
	inv, err := e.Prepare(br.Spec{
		Plan:        policy.Plan{Concurrency: 16, Compression: "zstd"},
		PDEndpoints: l.PDEndpoints, StorageURL: url, RunID: "real", LogDir: filepath.Join(t.TempDir(), "log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if dir := os.Getenv("BRCTL_TEST_KEEP"); dir != "" {
			for _, f := range []string{inv.LogFile, inv.OutputFile} {
				b, _ := os.ReadFile(f)
				_ = os.WriteFile(filepath.Join(dir, t.Name()+filepath.Base(f)), b, 0o600)
			}
		}
		if t.Failed() {
			for _, f := range []string{inv.LogFile, inv.OutputFile} {
				b, _ := os.ReadFile(f)
				t.Logf("%s:\n%s", f, b)
			}
		}
	})
	return inv
}

// attempt runs br once and returns its outcome and events; on is called for
// each event.
func attempt(t *testing.T, e *br.Engine, inv policy.Invocation, on func(*br.Attempt, policy.AttemptEvent)) (policy.Outcome, []policy.AttemptEvent) {
	t.Helper()
	a, err := e.Start(t.Context(), inv, br.Launch{})
	if err != nil {
		t.Fatal(err)
	}
	var events []policy.AttemptEvent
	for ev := range a.Events() {
		events = append(events, ev)
		if on != nil {
			on(a, ev)
		}
	}
	o := a.Wait()
	t.Logf("%s %q, exit %d, ts %v, service %s, resumable %v, retry after %v", o.Class, o.Reason, o.ExitCode, o.BackupTS, o.ServiceID, o.Resumable, o.RetryAfter)
	for _, ev := range events {
		t.Logf("event %s", fmt.Sprintf("%+v", ev))
	}
	return o, events
}

func TestRealBackupStopResumeAndRefusal(t *testing.T) {
	l, e := openLab(t)
	version, err := e.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("br %s", version)
	base := "local://" + t.TempDir()
	url := base + "/backup"
	inv := l.prepare(t, e, url)

	o, _ := attempt(t, e, inv, func(a *br.Attempt, ev policy.AttemptEvent) {
		if ev.Kind == policy.AttemptProgress {
			a.Stop(time.Minute)
		}
	})
	if !o.Stopped || o.Class != policy.OutcomeTransient || !o.Resumable || o.BackupTS == 0 || !strings.HasPrefix(o.ServiceID, "br-") {
		t.Fatalf("stopped: %+v", o)
	}
	if target, err := e.Target(t.Context(), base, url); err != nil || target.State != br.TargetResumable {
		t.Errorf("after TERM: %+v, %v", target, err)
	}
	first := o.BackupTS

	o, events := attempt(t, e, inv, nil)
	if o.Class != policy.OutcomeSuccess || o.BackupTS != first || o.Summary.Ranges == 0 {
		t.Fatalf("resumed: %+v", o)
	}
	var bar bool
	for _, ev := range events {
		bar = bar || ev.Kind == policy.AttemptProgress && ev.Progress.Total == 0
	}
	if !bar {
		t.Error("no progress of the terminal's bar was seen")
	}
	got, err := e.Confirm(t.Context(), url)
	t.Logf("artifact %+v", got)
	if err != nil || got.BackupTS != first || uint64(got.Ranges) != o.Summary.Ranges || len(got.MissingStores) > 0 || got.Schemas == 0 {
		t.Errorf("artifact %+v, %v", got, err)
	}

	o, _ = attempt(t, e, inv, nil)
	if o.Class != policy.OutcomeTargetInUse || o.Resumable {
		t.Errorf("same path again: %+v", o)
	}
}

// parentEnv makes a test run a first life of brctl: it starts br for the
// invocation in that file, writes the child's identity beside it, and dies by
// SIGKILL once br has begun.
const parentEnv = "BRCTL_TEST_PARENT"

func TestRealFirstLife(t *testing.T) {
	file := os.Getenv(parentEnv)
	if file == "" {
		t.Skip("skip: not started as a first life")
	}
	_, e := openLab(t)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var inv policy.Invocation
	if err := json.Unmarshal(raw, &inv); err != nil {
		t.Fatal(err)
	}
	_, _ = attempt(t, e, inv, func(a *br.Attempt, ev policy.AttemptEvent) {
		if ev.Kind != policy.AttemptProgress || ev.Progress.Ratio == 0 {
			return
		}
		ref, err := json.Marshal(a.Ref())
		if err == nil {
			err = os.WriteFile(file+".ref", ref, 0o600)
		}
		if err != nil {
			t.Error(err)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	})
}

func TestRealBrEndsInOrderWhenItsParentIsKilled(t *testing.T) {
	l, e := openLab(t)
	url := "local://" + filepath.Join(t.TempDir(), "backup")
	inv := l.prepare(t, e, url)
	file := filepath.Join(t.TempDir(), "invocation")
	raw, err := json.Marshal(inv)
	if err == nil {
		err = os.WriteFile(file, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestRealFirstLife$")
	cmd.Env = append(os.Environ(), parentEnv+"="+file)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the first life ended by itself: %v\n%s", err, out)
	}
	var ref policy.ChildRef
	raw, err = os.ReadFile(file + ".ref")
	if err == nil {
		err = json.Unmarshal(raw, &ref)
	}
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); e.Alive(ref); time.Sleep(20 * time.Millisecond) { // not our child
		if time.Now().After(deadline) {
			t.Error("br outlived its parent by 20 s")
			break
		}
	}
	if err := e.Recover(t.Context(), ref, time.Minute); err != nil {
		t.Error(err)
	}
	cp, err := e.ReadCheckpoint(t.Context(), url)
	if err != nil || cp.BackupTS == 0 || !strings.HasPrefix(cp.ServiceID, "br-") {
		t.Errorf("checkpoint %+v, %v", cp, err)
	}
	if o, _ := attempt(t, e, inv, nil); o.Class != policy.OutcomeSuccess || o.BackupTS != cp.BackupTS {
		t.Errorf("second life: %+v", o)
	}
}

func TestRealBackupKilled(t *testing.T) {
	l, e := openLab(t)
	inv := l.prepare(t, e, "local://"+filepath.Join(t.TempDir(), "backup"))
	o, _ := attempt(t, e, inv, func(a *br.Attempt, ev policy.AttemptEvent) {
		if ev.Kind == policy.AttemptProgress && ev.Progress.Ratio > 0 {
			a.Stop(0)
		}
	})
	if o.Class != policy.OutcomeKilled || o.ServiceID == "" {
		t.Fatalf("killed: %+v", o)
	}
	o, _ = attempt(t, e, inv, nil)
	if o.RetryAfter < time.Minute || o.Class != policy.OutcomeTransient || !o.Resumable {
		t.Errorf("after a kill: %+v", o)
	}
}
