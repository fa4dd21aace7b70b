package br

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/brctl/brctl/pkg/policy"
)

// TargetState is what br would find at a path. None of them means that a br is
// running there: only our own records know that.
type TargetState string

// The states of a target.
const (
	TargetEmpty     TargetState = "empty"     // nothing of br's, or no such directory yet
	TargetOnlyLock  TargetState = "only_lock" // an attempt that wrote no data; br accepts the path
	TargetResumable TargetState = "resumable" // a checkpoint to continue from, with the same arguments
	TargetLeftover  TargetState = "leftover"  // data without checkpoint or metadata; br refuses the path for ever
	TargetComplete  TargetState = "complete"  // a backupmeta; br refuses the path for ever
)

// Target is what preflight wants to know of a path.
type Target struct {
	State     TargetState
	Path      string
	Exists    bool
	FreeBytes uint64 // for us, on the file system of Path or of its nearest existing parent
	// OnRootFS reports that the base directory is on the file system of "/": for
	// a backup that every host is to share, most likely a mount is missing.
	OnRootFS bool
}

// Names of br's files; see also metaName.
const (
	lockName       = "backup.lock"
	checkpointName = "checkpoints/backup/checkpoint.meta"
)

// Target looks at the path of a run before it starts: what is there, whether this
// process may write there (tried, not guessed from mode bits: on NFS they lie),
// and how much room is left.
//
// baseURL is the configured place below which runs make their own directories.
// It must be there as a directory: of a path that is made as needed nobody could
// tell that its mount is missing, and the backup would fill the disk below it.
func (e *Engine) Target(ctx context.Context, baseURL, storageURL string) (Target, error) {
	base, err := e.localPath(baseURL)
	if err != nil {
		return Target{}, fmt.Errorf("look at backup directory: %w", err)
	}
	dir, err := e.localPath(storageURL)
	if err != nil {
		return Target{}, fmt.Errorf("look at target: %w", err)
	}
	if rel, err := filepath.Rel(base, dir); err != nil || !filepath.IsLocal(rel) {
		return Target{}, fmt.Errorf("look at target: %s is not below the backup directory %s", dir, base)
	}
	t, err := within(ctx, e.config.Timeout, func(context.Context) (Target, error) { return lookAt(base, dir) })
	if err != nil {
		return Target{}, fmt.Errorf("look at target: %w", err)
	}
	return t, nil
}

func lookAt(base, dir string) (Target, error) {
	onRoot, err := lookAtBase(base)
	if err != nil {
		return Target{}, err
	}
	state, err := targetState(dir)
	if err != nil {
		return Target{}, err
	}
	t := Target{State: state, Path: dir, OnRootFS: onRoot}
	existing, err := nearestDir(dir)
	if err != nil {
		return Target{}, err
	}
	t.Exists = existing == dir
	var s unix.Statfs_t
	if err := unix.Statfs(existing, &s); err != nil {
		return Target{}, fmt.Errorf("measure free space of %s: %w", existing, err)
	}
	t.FreeBytes = s.Bavail * uint64(s.Bsize)
	return t, tryWrite(existing)
}

// lookAtBase demands that base is a directory and reports whether it is on the
// file system of "/", by the device numbers of both.
func lookAtBase(base string) (onRoot bool, err error) {
	var at, root unix.Stat_t
	err = unix.Stat(base, &at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("backup directory %s does not exist here: is it mounted?", base)
	case err != nil:
		return false, fmt.Errorf("backup directory %s: %w", base, err)
	case at.Mode&unix.S_IFMT != unix.S_IFDIR:
		return false, fmt.Errorf("backup directory %s is not a directory", base)
	}
	if err := unix.Stat("/", &root); err != nil {
		return false, fmt.Errorf("look at /: %w", err)
	}
	return at.Dev == root.Dev, nil
}

// nearestDir returns dir or its nearest parent that exists; the base directory
// does.
func nearestDir(dir string) (string, error) {
	for {
		info, err := os.Stat(dir)
		switch {
		case err == nil && !info.IsDir():
			return "", fmt.Errorf("%s is not a directory", dir)
		case err == nil:
			return dir, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
		dir = filepath.Dir(dir)
	}
}

func tryWrite(dir string) error {
	f, err := os.CreateTemp(dir, ".brctl-write-test-*")
	if err != nil {
		return fmt.Errorf("write to target: %w", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// targetState classifies by br's own rules, in its order.
func targetState(dir string) (TargetState, error) {
	for _, known := range []struct {
		name  string
		state TargetState
	}{{metaName, TargetComplete}, {checkpointName, TargetResumable}} {
		found, err := isFile(filepath.Join(dir, known.name))
		if err != nil || found {
			return known.state, err
		}
	}
	data, err := hasData(dir)
	if err != nil || data {
		return TargetLeftover, err
	}
	locked, err := isFile(filepath.Join(dir, lockName))
	if err != nil || locked {
		return TargetOnlyLock, err
	}
	return TargetEmpty, nil
}

// isFile reports whether path is a file; a directory called backupmeta, as log
// backups have one, is not.
func isFile(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return info.Mode().IsRegular(), nil
}

// hasData reports whether any data file lies below dir.
func hasData(dir string) (bool, error) {
	found := errors.New("found")
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == dir && errors.Is(err, fs.ErrNotExist):
			return fs.SkipAll
		case err != nil:
			return err
		case isSST(d.Name()) && !d.IsDir():
			return found
		}
		return nil
	})
	if errors.Is(err, found) {
		return true, nil
	}
	return false, err
}

// Checkpoint is what br noted for a later attempt at the same path.
type Checkpoint struct {
	ServiceID string // of the service safepoint that br holds in PD
	BackupTS  policy.TS
}

// ReadCheckpoint reads br's checkpoint at a path. It is the second source for
// the service safepoint of a br whose log is lost. The error wraps
// fs.ErrNotExist when there is none.
func (e *Engine) ReadCheckpoint(ctx context.Context, storageURL string) (Checkpoint, error) {
	dir, err := e.localPath(storageURL)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read checkpoint: %w", err)
	}
	cp, err := within(ctx, e.config.Timeout, func(context.Context) (Checkpoint, error) {
		return readCheckpoint(filepath.Join(dir, checkpointName))
	})
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read checkpoint: %w", err)
	}
	return cp, nil
}

// readCheckpoint reads the first keys of the file only: the ranges that follow
// may be large.
func readCheckpoint(path string) (Checkpoint, error) {
	f, err := os.Open(path)
	if err != nil {
		return Checkpoint{}, err
	}
	defer func() { _ = f.Close() }()
	var cp Checkpoint
	dec := json.NewDecoder(f)
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return Checkpoint{}, fmt.Errorf("%s is not br's: no JSON object", filepath.Base(path))
	}
	for dec.More() && (cp.ServiceID == "" || cp.BackupTS == 0) {
		if err := readCheckpointKey(dec, &cp); err != nil {
			return Checkpoint{}, fmt.Errorf("%s is not br's: %w", filepath.Base(path), err)
		}
	}
	if cp.BackupTS == 0 {
		return Checkpoint{}, fmt.Errorf("%s has no backup-ts", filepath.Base(path))
	}
	return cp, nil
}

func readCheckpointKey(dec *json.Decoder, cp *Checkpoint) error {
	key, err := dec.Token()
	if err != nil {
		return err
	}
	switch key {
	case "gc-service-id":
		return dec.Decode(&cp.ServiceID)
	case "backup-ts":
		return dec.Decode((*uint64)(&cp.BackupTS))
	}
	var skipped json.RawMessage
	return dec.Decode(&skipped)
}

// within runs a look at a file system that may hang, as a dead NFS server's
// does: a system call on it cannot be interrupted, so after limit the answer is
// given up. The goroutine ends when the system call does.
func within[T any](ctx context.Context, limit time.Duration, look func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the file system did not answer within %v: %w", limit, context.DeadlineExceeded))
	defer cancel()
	type answer struct {
		value T
		err   error
	}
	got := make(chan answer, 1)
	go func() {
		v, err := look(ctx)
		got <- answer{v, err}
	}()
	select {
	case a := <-got:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
