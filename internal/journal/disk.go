package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// disk is the part of the file system that the journal writes to; tests fail it
// by operation.
type disk interface {
	// Append opens an existing file for appending.
	Append(path string) (file, error)
	// Create opens an empty file of mode 0600 for appending, replacing one that
	// an earlier crash left there.
	Create(path string) (file, error)
	Rename(from, to string) error
	// SyncDir makes the names in dir durable.
	SyncDir(dir string) error
}

// file is an open file whose writes go to its end.
type file interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

type osDisk struct{}

func (osDisk) Append(path string) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
}

func (osDisk) Create(path string) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_TRUNC, 0o600)
}

func (osDisk) Rename(from, to string) error { return os.Rename(from, to) }

func (osDisk) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	return d.Sync()
}

// makeDir creates dir for the owner only and makes its name durable.
func makeDir(d disk, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create journal directory: %w", err)
	}
	if err := d.SyncDir(filepath.Dir(dir)); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// writeNew writes data to a new file at path and returns it open, its data
// durable, its name not yet.
func writeNew(d disk, path string, data []byte) (file, error) {
	f, err := d.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create file: %w", err)
	}
	if _, err := f.Write(data); err != nil {
		return nil, errors.Join(fmt.Errorf("write file: %w", err), f.Close())
	}
	if err := f.Sync(); err != nil {
		return nil, errors.Join(fmt.Errorf("sync file: %w", err), f.Close())
	}
	return f, nil
}
