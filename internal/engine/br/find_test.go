package br_test

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/engine/br"
	"github.com/brctl/brctl/internal/engine/br/brtest"
	"github.com/brctl/brctl/pkg/policy"
)

// Between the fork and the record of it our death leaves a br in no book.
func TestABrThatNoBookKnowsIsFoundAndEnded(t *testing.T) {
	f := newFixture(t, brtest.Behaviour{Scenario: brtest.IgnoreTerm})
	other := br.New(br.Config{Binary: "br"}) // another life, which knows the run only
	find := func(url string) []policy.ChildRef {
		t.Helper()
		refs, err := other.Find(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		return refs
	}
	if got := find(f.inv.StorageURL); len(got) > 0 {
		t.Fatalf("found %+v before the start", got)
	}
	a := f.start(t, br.Launch{})
	await(t, a, policy.AttemptBackupTS)
	found := find(f.inv.StorageURL)
	if diff := cmp.Diff([]policy.ChildRef{a.Ref()}, found); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	for _, url := range []string{f.inv.StorageURL + "x", f.inv.StorageURL[:len(f.inv.StorageURL)-1], f.inv.StorageURL + "/"} {
		if got := find(url); len(got) > 0 {
			t.Errorf("%s: found %+v of another run", url, got)
		}
	}
	if err := other.Recover(t.Context(), found[0], 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if got := find(f.inv.StorageURL); len(got) > 0 {
		t.Errorf("found %+v after its end", got)
	}
}

func TestOnlyABackupToExactlyThisPlaceIsFound(t *testing.T) {
	url := "local://" + t.TempDir()
	for name, tt := range map[string]struct {
		args []string
		want int
	}{
		"as prepared":          {[]string{"backup", "full", "--pd", "pd:2379", "--storage", url, "--log-level", "info"}, 1},
		"a restore":            {[]string{"restore", "full", "--storage", url}, 0},
		"of another's flag":    {[]string{"backup", "full", "--log-file", url, "--storage", url + "2"}, 0},
		"the flag stands last": {[]string{"backup", "full", url, "--storage"}, 0},
		"inside another word":  {[]string{"backup full --storage " + url}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("/bin/sh", append([]string{"-c", "read never; exit 0", "br"}, tt.args...)...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if _, err := cmd.StdinPipe(); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
			got, err := br.New(br.Config{Binary: "br"}).Find(t.Context(), url)
			if err != nil || len(got) != tt.want || tt.want > 0 && got[0].PID != cmd.Process.Pid {
				t.Errorf("found %+v, %v", got, err)
			}
		})
	}
}

func TestASearchForAPlaceThatNoRunCanHaveIsAnError(t *testing.T) {
	for _, url := range []string{"", "s3://bucket/x"} {
		if got, err := br.New(br.Config{Binary: "br"}).Find(t.Context(), url); err == nil {
			t.Errorf("%q: %+v", url, got)
		}
	}
}
