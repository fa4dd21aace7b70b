package proc_test

import (
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/proc"
)

// find returns the processes that have mark as one whole argument.
func find(t *testing.T, mark string) []proc.Ref {
	t.Helper()
	refs, err := proc.Find(func(argv []string) bool { return slices.Contains(argv, mark) })
	if err != nil {
		t.Fatal(err)
	}
	return refs
}

func TestAProcessIsFoundByItsArgumentsWhileItLives(t *testing.T) {
	mark := "a mark, of " + t.TempDir() // nobody else's
	if got := find(t, mark); len(got) > 0 {
		t.Fatalf("found %+v before the start", got)
	}
	r := newRecorder()
	c := command("ignore-term", r)
	c.Args = []string{"", "-x", mark, ""}
	p := start(t, c)
	r.await(t, "ready")
	if diff := cmp.Diff([]proc.Ref{p.Ref()}, find(t, mark)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := find(t, mark[:len(mark)-1]); len(got) > 0 {
		t.Errorf("found %+v by a part of an argument", got)
	}
	var seen []string
	_, err := proc.Find(func(argv []string) bool {
		if slices.Contains(argv, mark) {
			seen = argv
		}
		return false
	})
	if diff := cmp.Diff(append([]string{c.Path}, c.Args...), seen); err != nil || diff != "" {
		t.Errorf("%v; arguments (-want +got):\n%s", err, diff)
	}
	p.Stop(0)
	p.Wait()
	if got := find(t, mark); len(got) > 0 {
		t.Errorf("found %+v after the end", got)
	}
}

// What a person runs from a shell is none of ours, whatever its arguments.
func TestAProcessThatLeadsNoSessionIsNotFound(t *testing.T) {
	mark := "a mark, of " + t.TempDir()
	begin := func(attr *syscall.SysProcAttr) {
		t.Helper()
		cmd := exec.Command("/bin/sh", "-c", "read never; exit 0", mark)
		cmd.SysProcAttr = attr
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	begin(&syscall.SysProcAttr{Setpgid: true})
	if got := find(t, mark); len(got) > 0 {
		t.Errorf("found %+v", got)
	}
	begin(&syscall.SysProcAttr{Setsid: true})
	if got := find(t, mark); len(got) != 1 {
		t.Errorf("found %+v, want the one of its own session", got)
	}
}

func TestAnotherUsersProcessIsNotFound(t *testing.T) {
	if syscall.Geteuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	mark := "a mark, of " + t.TempDir()
	cmd := exec.Command("/bin/sh", "-c", "read never; exit 0", mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir = "/"
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if got := find(t, mark); len(got) > 0 {
		t.Errorf("found %+v", got)
	}
}

func TestProcessesThatVanishDoNotDisturbTheSearch(t *testing.T) {
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				cmd := exec.Command("/bin/true")
				cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
				_ = cmd.Run()
			}
		}
	}()
	defer func() { close(stop); <-done }()
	for range 30 {
		if _, err := proc.Find(func([]string) bool { return false }); err != nil {
			t.Fatal(err)
		}
	}
}
