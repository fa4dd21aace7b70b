package app

import "fmt"

// Kind says what sort of trouble an Error is; the command line turns it into
// an exit code.
type Kind int

// The kinds of trouble.
const (
	KindFailed      Kind = iota // anything else
	KindUsage                   // what was asked for makes no sense
	KindConfig                  // the configuration is wrong
	KindNotFound                // no such schedule, run or cluster
	KindUnavailable             // PD or TiDB did not answer
	KindDeferred                // refused by policy for now; try again later
	KindPermission              // not allowed
)

// Error is trouble with what to do about it.
type Error struct {
	Kind Kind
	Err  error
	Hint string // what to do; may be empty
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

func trouble(kind Kind, hint, format string, args ...any) *Error {
	return &Error{Kind: kind, Err: fmt.Errorf(format, args...), Hint: hint}
}
