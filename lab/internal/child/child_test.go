package child_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/brctl/brctl/lab/internal/child"
)

func shell(t *testing.T, script string) *child.Process {
	t.Helper()
	return child.New(child.Spec{
		Name: "sh", Path: "/bin/sh", Args: []string{"-c", script}, LogFile: filepath.Join(t.TempDir(), "out"),
	})
}

func TestAChildCanBeKilledAndStartedAgain(t *testing.T) {
	p := shell(t, "sleep 600")
	for range 2 {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		if ended, _ := p.Exited(); ended {
			t.Fatal("it does not run")
		}
		if err := p.Start(); err == nil || !strings.Contains(err.Error(), "runs already") {
			t.Errorf("second start: got %v", err)
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		if ended, _ := p.Exited(); !ended {
			t.Fatal("it still runs")
		}
	}
}

func TestStopKillsAChildThatIgnoresTERM(t *testing.T) {
	p := shell(t, "trap '' TERM; while :; do sleep 1; done")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(50 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if ended, _ := p.Exited(); !ended {
		t.Error("it still runs")
	}
}
