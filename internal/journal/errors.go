package journal

import (
	"errors"
	"fmt"
	"strings"
)

// ErrBroken says that this Journal can no longer tell what is on disk (an fsync
// or the undoing of a half-written record went wrong) and so confirms nothing
// more. Opening it again reads what is really there.
var ErrBroken = errors.New("journal is unusable until it is opened again")

// CorruptError says that complete records of a journal are damaged, which no
// crash of ours can cause: every record before the last was confirmed to be on
// disk. Contents holds what the undamaged records say.
type CorruptError struct {
	Path     string
	Lines    []int // 1-based
	Contents Contents
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("journal %s is damaged at line %s; %d settings to restore are still readable: "+
		"run `brctl settings` to see them and `brctl settings restore --salvage` to put them back, "+
		"then compare the instances named in the damaged lines with SHOW CONFIG",
		e.Path, joinInts(e.Lines), len(e.Contents.Pending))
}

// NewerVersionError says that a later brctl wrote the journal in a format that
// this one does not know. Nothing was changed.
type NewerVersionError struct {
	Path    string
	Version int
}

func (e *NewerVersionError) Error() string {
	return fmt.Sprintf("journal %s has format %d, this brctl knows formats up to %d: "+
		"use the brctl that wrote it, or a later one", e.Path, e.Version, formatVersion)
}

// LockedError says that another process has the journal open for writing.
type LockedError struct {
	Path string
	PID  int // 0 when unknown
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("journal %s is in use by another brctl", e.Path)
	}
	return fmt.Sprintf("journal %s is in use by brctl with pid %d", e.Path, e.PID)
}

func joinInts(ns []int) string {
	texts := make([]string, len(ns))
	for i, n := range ns {
		texts[i] = fmt.Sprint(n)
	}
	return strings.Join(texts, ", ")
}
