// Package flock is an advisory lock on a file that names its holder.
//
// It knows nothing of brctl. The kernel drops the lock when the holder dies,
// however it dies, so a lock file that is left behind locks nothing; it is
// never removed, because removing it would let two processes lock two files of
// the same name. The lock belongs to the open file: child processes do not get
// it, since Go opens files close-on-exec.
package flock

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Lock is a held lock.
type Lock struct {
	file *os.File
}

// HeldError says that another open file holds the lock.
type HeldError struct {
	Path string
	PID  int // of the holder; 0 when it has not written it yet
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is locked by another process", e.Path)
	}
	return fmt.Sprintf("%s is locked by process %d", e.Path, e.PID)
}

// Acquire locks path, creating it with mode 0600, and writes our pid into it.
// It does not wait: where the lock is held it returns a *HeldError.
func Acquire(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if err := take(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Lock{file: f}, nil
}

// Release gives the lock up. The file stays.
func (l *Lock) Release() error { return l.file.Close() }

func take(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return &HeldError{Path: f.Name(), PID: holder(f)}
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("write pid: %w", err)
	}
	if _, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return fmt.Errorf("write pid: %w", err)
	}
	return nil
}

// holder reads the pid that the holder wrote, 0 when there is none.
func holder(f *os.File) int {
	text, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}
