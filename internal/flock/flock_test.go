package flock_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/brctl/brctl/internal/flock"
)

func acquire(t *testing.T, path string) *flock.Lock {
	t.Helper()
	l, err := flock.Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Release() }) // a test may have released it
	return l
}

func TestAHeldLockIsRefusedWithItsHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	// A longer pid of an earlier holder leaves no digits behind.
	if err := os.WriteFile(path, []byte("99999999999\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	held := acquire(t, path)
	_, err := flock.Acquire(path)
	var e *flock.HeldError
	if !errors.As(err, &e) || e.PID != os.Getpid() || e.Path != path {
		t.Errorf("second lock: %v, want it held by %d", err, os.Getpid())
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != strconv.Itoa(os.Getpid())+"\n" {
		t.Errorf("the file says %q, %v, want our pid", text, err)
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	acquire(t, path)
}

func TestAHolderThatHasNotSignedIsUnknown(t *testing.T) {
	for _, text := range []string{"", "not a pid\n"} {
		path := filepath.Join(t.TempDir(), "lock")
		acquire(t, path)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := flock.Acquire(path)
		var e *flock.HeldError
		if !errors.As(err, &e) || e.PID != 0 || e.Error() != path+" is locked by another process" {
			t.Errorf("%q: %v, want a holder that is not named", text, err)
		}
	}
}

func TestALockThatCannotBeMadeIsNoHeldLock(t *testing.T) {
	_, err := flock.Acquire(filepath.Join(t.TempDir(), "missing", "lock"))
	var held *flock.HeldError
	if !errors.Is(err, os.ErrNotExist) || errors.As(err, &held) {
		t.Errorf("%v, want ErrNotExist", err)
	}
}
