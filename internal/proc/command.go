package proc

import (
	"slices"
	"time"
)

// Stream says where a line was written.
type Stream int

// The streams of a process.
const (
	Stdout Stream = iota
	Stderr
)

func (s Stream) String() string {
	if s == Stderr {
		return "stderr"
	}
	return "stdout"
}

// Defaults of Command.
const (
	DefaultKeepLines = 100
	DefaultGrace     = 30 * time.Second
)

// Size of the pseudo terminal: wide enough that a progress bar keeps its
// figures, small enough that it stays one short line.
const (
	ttyRows = 40
	ttyCols = 120
)

// drainWait bounds the reading of output after the last process of the session
// is gone: a process that left the session may hold the other end for ever.
const drainWait = 2 * time.Second

// Command describes a process to start. The zero value of every field but Path
// means "the default".
type Command struct {
	Path string   // program; looked up in our PATH when it has no slash
	Args []string // without the program itself
	Env  []string // the whole environment, NAME=value; empty means empty. See CleanEnv
	Dir  string

	// TTY gives the child a pseudo terminal of 40×120 as its standard output
	// and controlling terminal; standard error stays a pipe. If we die, the
	// kernel hangs the terminal up and the child gets HUP.
	TTY bool

	// OnLine gets every line, cut to MaxLine bytes; the slice is valid during
	// the call only. Calls for one stream come in order; those for stdout and
	// stderr may overlap. The child waits while OnLine runs, once the kernel's
	// buffer is full.
	OnLine    func(s Stream, line []byte)
	MaxLine   int // bytes; DefaultMaxLine
	KeepLines int // last lines kept in Result.Tail; DefaultKeepLines, negative keeps none

	// Grace is the time between TERM and KILL when the context ends;
	// DefaultGrace.
	Grace time.Duration

	// Redact is applied to everything that is kept or printed: Result.Tail and
	// String.
	Redact func(string) string
}

// String returns the command as a shell would take it, redacted.
func (c Command) String() string {
	return c.redact(Quote(append([]string{c.Path}, c.Args...)))
}

func (c Command) redact(s string) string {
	if c.Redact == nil {
		return s
	}
	return c.Redact(s)
}

func (c Command) withDefaults() Command {
	if c.OnLine == nil {
		c.OnLine = func(Stream, []byte) {}
	}
	if c.KeepLines == 0 {
		c.KeepLines = DefaultKeepLines
	}
	if c.Grace <= 0 {
		c.Grace = DefaultGrace
	}
	return c
}

// Result is how a process ended.
type Result struct {
	PID       int
	ExitCode  int    // -1 when a signal ended it, or nothing has; see Hung
	Signal    string // "killed", "terminated", …; "" when it exited
	SignalNo  int    // 9, 15, …; 0 when it exited
	Stopped   bool   // Stop was called, or the context ended, before it ended
	Killed    bool   // it outlived the grace time and we sent KILL
	Escaped   []int  // processes of its session that outlived it; they were killed
	Survivors []int  // those that KILL did not end within 10 s, itself first; see Hung
	Cut       bool   // its output was still held open by somebody and reading was given up
	Tail      []string
	StartedAt time.Time
	EndedAt   time.Time
}

// Hung reports that KILL did not end the process itself: it waits in the
// kernel, as one does that writes to a dead mount, and was given up. It is then
// among the survivors, how it ends is not known, and EndedAt is when it was
// given up.
func (r Result) Hung() bool { return r.PID != 0 && slices.Contains(r.Survivors, r.PID) }
