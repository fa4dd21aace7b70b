package app

import (
	"errors"

	"github.com/brctl/brctl/internal/crashpoint"
	"github.com/brctl/brctl/internal/journal"
	"github.com/brctl/brctl/internal/state"
)

// keepTrouble adds what closing had to say without losing the kind of err.
func keepTrouble(err, closing error) error {
	if closing == nil {
		return err
	}
	var e *Error
	if errors.As(err, &e) {
		return &Error{Kind: e.Kind, Err: errors.Join(e.Err, closing), Hint: e.Hint}
	}
	return errors.Join(err, closing)
}

func lockState(dir string) (*state.DirLock, error) {
	lock, err := state.Lock(dir)
	var locked *state.LockedError
	if errors.As(err, &locked) {
		return nil, &Error{Kind: KindDeferred, Err: err, Hint: "wait for it to end, or give this one a state directory of its own"}
	}
	if err != nil {
		return nil, &Error{Kind: KindFailed, Err: err, Hint: "check state.dir and its owner"}
	}
	return lock, nil
}

// openJournal opens a journal with open: journal.Open, or journal.Salvage when a
// person has decided to go on with what is readable of a damaged one.
func openJournal(open func(string, ...journal.Option) (*journal.Journal, error), path string, warn func(string)) (*journal.Journal, error) {
	j, err := open(path, journal.WithHook(crashpoint.Hit))
	var locked *journal.LockedError
	switch {
	case errors.As(err, &locked):
		return nil, &Error{Kind: KindDeferred, Err: err}
	case err != nil:
		return nil, &Error{Kind: KindFailed, Err: err}
	}
	warnAll(warn, j.Notes())
	return j, nil
}

func warnAll(warn func(string), texts []string) {
	for _, text := range texts {
		warn(text)
	}
}
