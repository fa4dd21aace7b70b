package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// suffix ends the name of every journal.
const suffix = ".journal"

// Path is where the journal of a cluster is kept.
func Path(stateDir string, clusterID uint64) string {
	return filepath.Join(Dir(stateDir), strconv.FormatUint(clusterID, 10)+suffix)
}

// Dir is where the journals of a state directory are kept.
func Dir(stateDir string) string { return filepath.Join(stateDir, "journal") }

// Listed is one journal of a directory.
type Listed struct {
	Path     string
	Contents Contents
	Err      error // why Contents may not be all there is; as Read returns it
}

// List reads every journal of a directory, without locking any. A journal that
// cannot be read does not hide the others. A missing directory has none; one
// that cannot be looked into is an error.
func List(dir string) ([]Listed, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list journals: %w", err)
	}
	var out []Listed
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		c, err := Read(path)
		out = append(out, Listed{Path: path, Contents: c, Err: err})
	}
	return out, nil
}

// Read returns what a journal says without locking it. A run may be writing to
// it: then a note of a last write that was cut short may only mean that Read
// came in the middle of it. A missing journal says nothing, without an error.
// With a *CorruptError
// the contents are those of the undamaged records; with any other error they
// are empty.
func Read(path string) (Contents, error) {
	r, err := readFile(path)
	if err != nil {
		return Contents{}, err
	}
	return r.contents(path)
}

// replayed is a journal file as read.
type replayed struct {
	exists  bool
	state   *state
	size    int64 // of the part that is kept; what follows is a torn write
	ended   bool  // the last record kept has its newline
	damaged []int // 1-based numbers of lines that are not what was written
	data    []byte
	notes   []string
}

func (r *replayed) contents(path string) (Contents, error) {
	c := r.state.contents(r.notes)
	if len(r.damaged) > 0 {
		return c, &CorruptError{Path: path, Lines: r.damaged, Contents: c}
	}
	return c, nil
}

// readFile reads and replays path. Its error is an I/O error or a
// *NewerVersionError; damage is reported in the result.
func readFile(path string) (*replayed, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &replayed{state: newState()}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	return parse(path, data)
}

func parse(path string, data []byte) (*replayed, error) {
	r := &replayed{exists: true, state: newState(), data: data}
	if err := r.replay(); err != nil {
		var newer errNewer
		if errors.As(err, &newer) {
			return nil, &NewerVersionError{Path: path, Version: newer.version}
		}
		return nil, fmt.Errorf("replay journal %s: %w", path, err)
	}
	return r, nil
}

func (r *replayed) replay() error {
	if len(r.data) == 0 {
		r.notes = append(r.notes, "the journal is empty, which brctl never leaves it: "+lost)
		return nil
	}
	rest := r.data
	for number := 1; len(rest) > 0; number++ {
		line, after, terminated := bytes.Cut(rest, []byte("\n"))
		if !terminated {
			return r.tail(line)
		}
		if err := r.line(line, number); err != nil {
			return err
		}
		rest = after
		r.size, r.ended = int64(len(r.data)-len(rest)), true
	}
	return nil
}

// lost is what to do when a journal's beginning is not there.
const lost = "what it held is lost; compare the backup settings of the instances with what they should be (SHOW CONFIG)"

// line applies one complete line or counts it as damaged.
func (r *replayed) line(line []byte, number int) error {
	err := r.try(line)
	var damage errDamaged
	if errors.As(err, &damage) {
		r.damaged = append(r.damaged, number)
		return nil
	}
	return err
}

// tail judges a last line without a newline. A record that is complete but for
// its newline, lost or overwritten by one other byte, is kept: it may have been
// confirmed. Anything else is the beginning of a write that was not.
func (r *replayed) tail(line []byte) error {
	for _, whole := range [][]byte{line, line[:len(line)-1]} {
		err := r.try(whole)
		var damage errDamaged
		if errors.As(err, &damage) {
			continue
		}
		if err != nil {
			return err
		}
		r.size, r.ended = r.size+int64(len(whole)), false
		r.notes = append(r.notes, "the last record lacked its end of line; it is complete and was kept")
		return nil
	}
	if r.size == 0 {
		r.notes = append(r.notes, fmt.Sprintf("the journal's only line is cut short (%d bytes): %s", len(line), lost))
		return nil
	}
	r.notes = append(r.notes, fmt.Sprintf(
		"the last write was cut short (%d bytes) and is dropped: it was never confirmed, so nothing was sent for it", len(line)))
	return nil
}

// try applies a line. An errDamaged leaves the state as it was.
func (r *replayed) try(line []byte) error {
	rec, err := decode(line)
	if err != nil {
		return err
	}
	return r.state.apply(rec)
}
