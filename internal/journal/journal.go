package journal

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/brctl/brctl/internal/flock"
	"github.com/brctl/brctl/pkg/policy"
)

// The points at which the hook of WithHook is called.
const (
	PointBeforeJournal      = "before_journal"       // Intend: nothing is written yet
	PointAfterJournal       = "after_journal"        // Intend: the intention is on disk
	PointAfterRestoreRecord = "after_restore_record" // Close: the ends of some settings are on disk
)

// rewriteFrom is the size in bytes from which a journal that has doubled since
// it was last one snapshot is made one again.
const rewriteFrom = 1 << 20

// Journal is a journal open for writing by this process alone. Its methods may
// be called concurrently. Each returns only when what it recorded is on disk;
// where it returns an error nothing was recorded, unless the error is
// ErrBroken: then it is unknown until the journal is opened again.
type Journal struct {
	path string
	lock *flock.Lock
	disk disk
	now  func() time.Time
	hook func(point string)

	mu           sync.Mutex
	state        *state
	notes        []string
	file         file  // nil until the first record
	size         int64 // of file
	snapshotSize int64 // of file when it was last one snapshot; 0 when not known
	rewriteFrom  int64
	broken       error
}

// Option changes how a Journal is opened.
type Option func(*Journal)

// WithClock replaces time.Now.
func WithClock(now func() time.Time) Option { return func(j *Journal) { j.now = now } }

// WithHook has hook called at the named points, without any lock held, so that
// a test may end the process there.
func WithHook(hook func(point string)) Option { return func(j *Journal) { j.hook = hook } }

func withDisk(d disk) Option { return func(j *Journal) { j.disk = d } }

// Open locks and replays the journal at path. The file is made by the first
// record, so that opening leaves no trace but the lock file beside it. What was
// odd but harmless is in Notes.
//
// It returns a *LockedError, a *CorruptError (Salvage gets past that) or a
// *NewerVersionError; in all three cases the journal was not touched.
func Open(path string, opts ...Option) (*Journal, error) {
	return open(path, opts, func(j *Journal, r *replayed) error {
		if _, err := r.contents(path); err != nil {
			return err
		}
		return j.resume(r)
	})
}

// Salvage opens a journal as Open does, but where records are damaged it copies
// the file to "<path>.damaged-<UTC time>" and goes on with what the undamaged
// records say. A setting whose end was in a damaged record is pending again,
// which is harmless: a restore only overwrites values of ours.
func Salvage(path string, opts ...Option) (*Journal, error) {
	return open(path, opts, func(j *Journal, r *replayed) error {
		if len(r.damaged) == 0 {
			return j.resume(r)
		}
		return j.salvage(r)
	})
}

func open(path string, opts []Option, start func(*Journal, *replayed) error) (*Journal, error) {
	j := &Journal{path: path, disk: osDisk{}, now: time.Now, hook: func(string) {}, rewriteFrom: rewriteFrom}
	for _, o := range opts {
		o(j)
	}
	if err := makeDir(j.disk, filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := j.acquire(); err != nil {
		return nil, err
	}
	r, err := readFile(path)
	if err == nil {
		j.state, j.notes = r.state, r.notes
		err = start(j, r)
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

func (j *Journal) acquire() error {
	l, err := flock.Acquire(j.path + ".lock")
	var held *flock.HeldError
	if errors.As(err, &held) {
		return &LockedError{Path: j.path, PID: held.PID}
	}
	if err != nil {
		return fmt.Errorf("lock journal: %w", err)
	}
	j.lock = l
	return nil
}

// resume goes on behind the last record of an undamaged file.
func (j *Journal) resume(r *replayed) error {
	if !r.exists {
		return nil
	}
	if r.size == 0 || !r.ended || r.size < int64(len(r.data)) {
		return j.rewrite(j.state)
	}
	f, err := j.disk.Append(j.path)
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	j.file, j.size = f, r.size
	return nil
}

// salvage keeps a copy of a damaged file and rewrites it from the rest.
func (j *Journal) salvage(r *replayed) error {
	kept := j.path + ".damaged-" + j.now().UTC().Format("20060102T150405Z")
	f, err := writeNew(j.disk, kept, r.data)
	if err != nil {
		return fmt.Errorf("keep damaged journal: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("keep damaged journal: %w", err)
	}
	j.notes = append(j.notes, fmt.Sprintf("the journal was damaged at line %s; it is kept as %s", joinInts(r.damaged), kept))
	return j.rewrite(j.state)
}

// Close gives the journal up. What is pending stays on disk.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.broken = fmt.Errorf("%w: it is closed", ErrBroken)
	var err error
	if j.file != nil {
		err = j.file.Close()
		j.file = nil
	}
	if j.lock != nil {
		err = errors.Join(err, j.lock.Release())
		j.lock = nil
	}
	return err
}

// Contents returns what the journal says now.
func (j *Journal) Contents() Contents {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state.contents(j.notes)
}

// Pending returns what is to be put back, by instance, name and store id.
func (j *Journal) Pending() []Pending { return j.Contents().Pending }

// Notes returns sentences for people about what was odd in the file.
func (j *Journal) Notes() []string { return j.Contents().Notes }

// Connect records how the cluster is reached, if that changed.
func (j *Journal) Connect(c ConnInfo) error {
	return j.write(record{Op: opConnect, Conn: &c})
}

// Intend records that New is about to be sent for each entry. The caller sends
// nothing before it has returned nil.
func (j *Journal) Intend(runID string, entries []Entry) error {
	j.hook(PointBeforeJournal)
	if err := j.write(record{Op: opIntend, RunID: runID, Entries: entries}); err != nil {
		return err
	}
	j.hook(PointAfterJournal)
	return nil
}

// SawValue records that an instance uses got in place of a value we sent: TiKV
// replaces a num-threads that is out of range and says nothing. From then on
// got is ours as well. A setting that is not pending is left alone.
func (j *Journal) SawValue(k Key, got string) error {
	return j.write(record{Op: opSaw, Keys: []Key{k}, Value: got})
}

// End records how pending settings came to their end. Settings that are not
// pending are left alone, so it may be repeated.
func (j *Journal) End(how Closing, keys ...Key) error {
	if err := j.write(record{Op: opClose, How: how, Keys: keys}); err != nil {
		return err
	}
	j.hook(PointAfterRestoreRecord)
	return nil
}

// ChildStarted records a process of the engine; while it lives nothing may be
// put back by another process.
func (j *Journal) ChildStarted(c policy.ChildRef) error {
	return j.write(record{Op: opChildStarted, Child: &c})
}

// ChildGone records that the process has ended.
func (j *Journal) ChildGone(c policy.ChildRef) error {
	return j.write(record{Op: opChildGone, Child: &c})
}

// write makes r durable, then part of the contents. A record that tells nothing
// new is not written.
func (j *Journal) write(r record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return j.broken
	}
	r.At = j.now().UTC()
	next := j.state.clone()
	if err := next.apply(r); err != nil {
		return fmt.Errorf("record %s: %w", r.Op, err)
	}
	if next.equal(j.state) {
		return nil
	}
	if j.file == nil || len(next.pending) == 0 || j.size > max(j.rewriteFrom, 2*j.snapshotSize) {
		return j.rewrite(next)
	}
	return j.append(r, next)
}

// append adds one line. If that fails before the line is confirmed, the file is
// put back to what it was.
func (j *Journal) append(r record, next *state) error {
	line, err := encode(r)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(line); err != nil {
		return j.undo(fmt.Errorf("write journal: %w", err))
	}
	if err := j.file.Sync(); err != nil {
		return j.fail(fmt.Errorf("sync journal: %w", err))
	}
	j.state, j.size = next, j.size+int64(len(line))
	return nil
}

// undo cuts off a write that did not happen in full. Where the disk is full a
// truncation still works.
func (j *Journal) undo(cause error) error {
	if err := j.file.Truncate(j.size); err != nil {
		return j.fail(errors.Join(cause, fmt.Errorf("truncate journal: %w", err)))
	}
	return cause
}

// fail ends the use of the journal: after a failed fsync the kernel may hold the
// pages as clean though they are not on disk, so nothing more can be confirmed.
func (j *Journal) fail(cause error) error {
	j.broken = fmt.Errorf("%w: %w", ErrBroken, cause)
	return j.broken
}

// rewrite replaces the file by one snapshot of next, atomically: a new file,
// synced, renamed over the old one, the directory synced. Until the rename the
// old file is whole and in use.
func (j *Journal) rewrite(next *state) error {
	snapshot := next.snapshot()
	snapshot.At = j.now().UTC()
	line, err := encode(snapshot)
	if err != nil {
		return err
	}
	f, err := writeNew(j.disk, j.path+".new", line)
	if err != nil {
		return fmt.Errorf("rewrite journal: %w", err)
	}
	if err := j.disk.Rename(j.path+".new", j.path); err != nil {
		return errors.Join(fmt.Errorf("rewrite journal: %w", err), f.Close())
	}
	old := j.file
	j.state, j.file, j.size = next, f, int64(len(line))
	j.snapshotSize = j.size
	if old != nil {
		_ = old.Close() // the name is the new file's; what this one held is in it
	}
	if err := j.disk.SyncDir(filepath.Dir(j.path)); err != nil {
		return j.fail(fmt.Errorf("sync journal directory: %w", err))
	}
	return nil
}
