package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/brctl/brctl/internal/flock"
)

// DirLock is the right of one process to work with a state directory. The
// kernel takes it back when the process dies.
type DirLock struct {
	lock *flock.Lock
}

// LockedError says that another brctl works with the state directory.
type LockedError struct {
	Dir string
	PID int // 0 when unknown
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("state directory %s is in use by another brctl", e.Dir)
	}
	return fmt.Sprintf("state directory %s is in use by brctl with pid %d", e.Dir, e.PID)
}

// Lock takes the lock of a state directory, which it creates (mode 0700) where
// it is missing. It does not wait: it returns a *LockedError.
func Lock(dir string) (*DirLock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create state directory: %w", err)
	}
	l, err := flock.Acquire(filepath.Join(dir, "lock"))
	var held *flock.HeldError
	if errors.As(err, &held) {
		return nil, &LockedError{Dir: dir, PID: held.PID}
	}
	if err != nil {
		return nil, fmt.Errorf("lock state directory: %w", err)
	}
	return &DirLock{lock: l}, nil
}

// Unlock gives the lock up.
func (l *DirLock) Unlock() error { return l.lock.Release() }
