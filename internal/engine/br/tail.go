package br

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/brctl/brctl/internal/proc"
)

// follower reads what is appended to br's log from the moment it was made: an
// earlier attempt of the same run wrote to the same file, and its errors are
// not ours. The file may appear late, and it may be renamed and begun again
// (br does so at 300 MB). Not safe for concurrent use.
type follower struct {
	path  string
	file  *os.File // nil while there is none
	lines *proc.LineSplitter
}

// follow opens path, if it exists, at its present end.
func follow(path string, emit func(line []byte)) (*follower, error) {
	f := &follower{path: path, lines: proc.NewLineSplitter(0, emit)}
	if err := f.open(); err != nil {
		return nil, err
	}
	if f.file != nil {
		if _, err := f.file.Seek(0, io.SeekEnd); err != nil {
			_ = f.file.Close()
			return nil, fmt.Errorf("follow br's log: %w", err)
		}
	}
	return f, nil
}

// open opens the file if it exists.
func (f *follower) open() error {
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("follow br's log: %w", err)
	}
	f.file = file
	return nil
}

// poll reads everything that is new.
func (f *follower) poll() error {
	for {
		if f.file == nil {
			if err := f.open(); err != nil || f.file == nil {
				return err
			}
		}
		replaced := f.replaced() // asked before reading: what is written after a rename goes elsewhere
		if _, err := io.Copy(f.lines, f.file); err != nil {
			return fmt.Errorf("read br's log: %w", err)
		}
		if !replaced {
			return nil
		}
		f.lines.Flush()
		_ = f.file.Close()
		f.file = nil
	}
}

// replaced reports whether path names another file now than the one that is
// open. While it names none, the open one still counts.
func (f *follower) replaced() bool {
	now, err := os.Stat(f.path)
	if err != nil {
		return false
	}
	open, err := f.file.Stat()
	return err == nil && !os.SameFile(now, open)
}

// close reads the rest and ends the last line.
func (f *follower) close() error {
	err := f.poll()
	f.lines.Flush()
	if f.file != nil {
		_ = f.file.Close()
	}
	return err
}
