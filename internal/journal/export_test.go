package journal

import (
	"errors"
	"os"
	"testing"
)

// FaultyDisk is the real disk with failures by operation name: "create",
// "append", "rename", "syncdir", "write", "sync", "truncate". A write
// that fails leaves the first half of its bytes in the file.
type FaultyDisk struct {
	osDisk
	Fail   func(operation string) error
	NoSync bool // for tests that reopen thousands of times and lose no power
}

// WithFaults opens the journal on d.
func WithFaults(t *testing.T, d *FaultyDisk) Option {
	t.Helper()
	return withDisk(d)
}

// SetRewriteFrom lowers the size from which a journal is rewritten.
func SetRewriteFrom(t *testing.T, j *Journal, size int64) {
	t.Helper()
	j.rewriteFrom = size
}

// Seal is the line format, for tests that forge lines.
func Seal(version int, body string) string { return string(seal(version, []byte(body))) }

// ReadBytes is Read of a file with the given bytes.
func ReadBytes(data []byte) (Contents, error) {
	r, err := parse("bytes", data)
	if err != nil {
		return Contents{}, err
	}
	return r.contents("bytes")
}

func (d *FaultyDisk) check(operation string) error {
	if d.Fail == nil {
		return nil
	}
	return d.Fail(operation)
}

func (d *FaultyDisk) Append(path string) (file, error) {
	if err := d.check("append"); err != nil {
		return nil, err
	}
	f, err := d.osDisk.Append(path)
	if err != nil {
		return nil, err
	}
	return &faultyFile{f, d}, nil
}

func (d *FaultyDisk) Create(path string) (file, error) {
	if err := d.check("create"); err != nil {
		return nil, err
	}
	f, err := d.osDisk.Create(path)
	if err != nil {
		return nil, err
	}
	return &faultyFile{f, d}, nil
}

func (d *FaultyDisk) Rename(from, to string) error {
	if err := d.check("rename"); err != nil {
		return err
	}
	if d.NoSync { // ext4 writes a file out when it replaces another
		if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return d.osDisk.Rename(from, to)
}

func (d *FaultyDisk) SyncDir(dir string) error {
	if err := d.check("syncdir"); err != nil {
		return err
	}
	if d.NoSync {
		return nil
	}
	return d.osDisk.SyncDir(dir)
}

type faultyFile struct {
	file
	disk *FaultyDisk
}

func (f *faultyFile) Write(p []byte) (int, error) {
	if err := f.disk.check("write"); err != nil {
		n, _ := f.file.Write(p[:len(p)/2])
		return n, err
	}
	return f.file.Write(p)
}

func (f *faultyFile) Sync() error {
	if err := f.disk.check("sync"); err != nil {
		return err
	}
	if f.disk.NoSync {
		return nil
	}
	return f.file.Sync()
}

func (f *faultyFile) Truncate(size int64) error {
	if err := f.disk.check("truncate"); err != nil {
		return err
	}
	return f.file.Truncate(size)
}
