package state_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/brctl/brctl/internal/state"
	"github.com/brctl/brctl/pkg/policy"
)

func TestAReaderSeesEachCommitWhileItIsWrittenTo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "odd ?name#%20")
	db := open(t, dir)
	must(t, db.CreateRun(t.Context(), queued(1, "nightly", policy.RunRunning)))
	reader, err := state.OpenReadOnly(t.Context(), dir, options())
	must(t, err)
	defer func() { _ = reader.Close() }()

	const events = 200
	var wg sync.WaitGroup
	for range 2 { // two writers of one process, and one of another connection
		wg.Go(func() { appendEvents(t, db, events) })
	}
	other := open(t, dir)
	wg.Go(func() { appendEvents(t, other, events) })
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for seen, running := 0, true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		got, err := reader.Events(t.Context(), id(1), 0)
		must(t, err)
		if len(got) < seen || len(got) > 0 && got[len(got)-1].Seq != int64(len(got)) {
			t.Fatalf("saw %d events after %d, the last %+v", len(got), seen, got[len(got)-1])
		}
		seen = len(got)
	}
	if got, err := reader.Events(t.Context(), id(1), 0); err != nil || len(got) != 3*events {
		t.Errorf("%d events, %v, want %d", len(got), err, 3*events)
	}
}

func appendEvents(t *testing.T, db *state.DB, n int) {
	t.Helper()
	for range n {
		if _, err := db.AppendEvent(context.Background(), id(1), policy.Event{At: began, Kind: "tick"}); err != nil {
			t.Error(err)
			return
		}
	}
}

// TestWhatWasAcknowledgedSurvivesAKill has a child write events and report each
// acknowledged one, kills it at some moment and looks for all of them.
func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	for _, after := range []int{1, 17, 60} {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "STATE_TEST_WRITE="+dir)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		acknowledged := int64(0)
		for acknowledged < int64(after) {
			if _, err := fmt.Fscanln(out, &acknowledged); err != nil {
				t.Fatalf("child ended after %d: %v", acknowledged, err)
			}
		}
		must(t, cmd.Process.Signal(syscall.SIGKILL))
		for { // what it said before the signal reached it
			var seq int64
			if _, err := fmt.Fscanln(out, &seq); err != nil {
				break
			}
			acknowledged = seq
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("child: %v, want it killed", err)
		}
		got, err := open(t, dir).Events(t.Context(), id(1), 0)
		must(t, err)
		if n := int64(len(got)); n < acknowledged || n > acknowledged+1 {
			t.Errorf("%d events, want the %d acknowledged and at most one more", n, acknowledged)
		}
	}
}

func TestMain(m *testing.M) {
	if dir := os.Getenv("STATE_TEST_WRITE"); dir != "" {
		writeForever(dir)
	}
	if dir := os.Getenv("STATE_TEST_LOCK"); dir != "" {
		lockForever(dir)
	}
	os.Exit(m.Run())
}

func writeForever(dir string) {
	ctx := context.Background()
	db, err := state.Open(ctx, dir, options())
	if err == nil {
		err = db.CreateRun(ctx, queued(1, "nightly", policy.RunRunning))
	}
	for err == nil {
		var seq int64
		if seq, err = db.AppendEvent(ctx, id(1), policy.Event{At: began, Kind: "tick"}); err == nil {
			fmt.Println(seq)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func lockForever(dir string) {
	if _, err := state.Lock(dir); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("locked")
	select {}
}

func TestASecondProcessIsToldWhoHasTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "STATE_TEST_LOCK="+dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var word string
	if _, err := fmt.Fscanln(out, &word); err != nil || word != "locked" {
		t.Fatalf("child said %q, %v", word, err)
	}
	_, err = state.Lock(dir)
	var locked *state.LockedError
	if !errors.As(err, &locked) || locked.PID != cmd.Process.Pid || locked.Dir != dir {
		t.Errorf("lock: %v, want LockedError with pid %d", err, cmd.Process.Pid)
	}
	must(t, cmd.Process.Signal(syscall.SIGKILL))
	if err := cmd.Wait(); err == nil {
		t.Error("child ended by itself, want it killed")
	}
	for range 2 { // after a kill, and after an orderly end
		l, err := state.Lock(dir)
		must(t, err)
		must(t, l.Unlock())
	}
}

// fill appends events to run 1 until there is no room, and returns how many were
// acknowledged.
func fill(t *testing.T, db *state.DB) int {
	t.Helper()
	event := policy.Event{At: began, Kind: "tick", Message: strings.Repeat("x", 500)}
	for acknowledged := range 10000 {
		_, err := db.AppendEvent(t.Context(), id(1), event)
		switch {
		case err == nil:
		case acknowledged > 0 && strings.Contains(err.Error(), "full"):
			return acknowledged
		default:
			t.Fatalf("after %d events: %v, want it to be full", acknowledged, err)
		}
	}
	t.Fatal("10,000 events found room")
	return 0
}

func TestAFullFileSaysSoAndKeepsWhatItHad(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	must(t, db.CreateRun(t.Context(), queued(1, "nightly", policy.RunRunning)))
	limit := state.SQL(t, db)
	var pages int
	must(t, limit.QueryRow("PRAGMA page_count").Scan(&pages))
	must(t, limit.QueryRow(fmt.Sprintf("PRAGMA max_page_count = %d", pages+4)).Scan(&pages))

	acknowledged := fill(t, db)
	must(t, limit.QueryRow("PRAGMA max_page_count = 100000").Scan(&pages))
	if _, err := db.AppendEvent(t.Context(), id(1), policy.Event{At: began, Kind: "again"}); err != nil {
		t.Errorf("after there was room again: %v", err)
	}
	must(t, db.Close())
	got, err := open(t, dir).Events(t.Context(), id(1), 0)
	if err != nil || len(got) != acknowledged+1 {
		t.Errorf("%d events, %v, want %d", len(got), err, acknowledged+1)
	}
}

func TestARealFullFileSystemKeepsWhatWasAcknowledged(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("skip: no tmpfs: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	db := open(t, dir)
	must(t, db.CreateRun(t.Context(), queued(1, "nightly", policy.RunRunning)))
	acknowledged := fill(t, db)
	_ = db.Close() // there is no room to tidy up in
	got, err := open(t, dir).Events(t.Context(), id(1), 0)
	if err != nil || len(got) != acknowledged {
		t.Errorf("%d events, %v, want the %d acknowledged", len(got), err, acknowledged)
	}
}

func TestManyMayOpenANewFileAtOnce(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			db, err := state.Open(context.Background(), dir, options())
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = db.Close() }()
			if err := db.CreateRun(context.Background(), queued(n, "nightly", policy.RunQueued)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if runs, err := open(t, dir).Runs(t.Context(), state.Filter{}); err != nil || len(runs) != 8 {
		t.Errorf("%d runs, %v, want 8", len(runs), err)
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	db := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.CreateRun(ctx, queued(1, "nightly", policy.RunQueued)); !errors.Is(err, context.Canceled) {
		t.Errorf("create: %v, want Canceled", err)
	}
	if runs, err := db.Runs(t.Context(), state.Filter{}); err != nil || len(runs) != 0 {
		t.Errorf("runs %v, %v, want none", runs, err)
	}
}
