package brtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// roleEnv carries the behaviour to the fake. Only the script that New writes
// sets it, so it does not matter which environment the engine gives to br.
const roleEnv = "BRCTL_FAKE_BR"

// Scenario is the course that a fake br takes.
type Scenario string

// The scenarios. All but Print answer --version as br does.
const (
	Success      Scenario = "success"       // a whole backup, real backupmeta included
	NoBackup     Scenario = "no_backup"     // exit 0, no summary, nothing written
	Print        Scenario = "print"         // prints the given lines and exits with Exit
	HugeLine     Scenario = "huge_line"     // a failed summary of 8 MiB on one line, then the error
	KillSelf     Scenario = "kill_self"     // as Success, but ends by SIGKILL half way
	IgnoreTerm   Scenario = "ignore_term"   // as Success with an endless middle; no signal but KILL ends it
	LeaveChild   Scenario = "leave_child"   // as NoBackup, leaving a child that ignores signals
	GCPanic      Scenario = "gc_panic"      // GC passed the backup: exit 2 with a Go panic
	EchoArgs     Scenario = "echo_args"     // prints its arguments and environment on stderr, exit 1
	SilentUntil  Scenario = "silent"        // says nothing until it is signalled
	WrongProgram Scenario = "wrong_program" // not br at all: knows no --version
)

// Behaviour is a kind of br. The zero value is a br that succeeds at once.
type Behaviour struct {
	Scenario Scenario
	Release  string        // of --version; "v8.5.0"
	Duration time.Duration // of the backup proper
	Stores   []uint64      // stores that write data files; 1
	Files    int           // data files of each store; 2. Negative: none, an empty backup

	// For Print.
	Stdout, Stderr, Log []string
	Exit                int
	Hang                bool // after printing, wait for a signal; then end as br does
}

// New writes a program that behaves so and returns its path.
func New(tb testing.TB, b Behaviour) string {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	role, err := json.Marshal(b.withDefaults())
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(tb.TempDir(), "br")
	script := fmt.Sprintf("#!/bin/sh\n%s=%s exec %s \"$@\"\n", roleEnv, quote(string(role)), quote(self))
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		tb.Fatal(err)
	}
	return path
}

// Main runs the fake when this process is one, and never returns then.
// Otherwise it runs the tests and exits: call it as the whole of TestMain.
func Main(m *testing.M) {
	if role, ok := os.LookupEnv(roleEnv); ok {
		os.Exit(run(role, os.Args[1:]))
	}
	os.Exit(m.Run())
}

func (b Behaviour) withDefaults() Behaviour {
	if b.Scenario == "" {
		b.Scenario = Success
	}
	if b.Release == "" {
		b.Release = "v8.5.0"
	}
	if b.Stores == nil {
		b.Stores = []uint64{1}
	}
	if b.Files == 0 {
		b.Files = 2
	}
	if b.Scenario == KillSelf && b.Duration == 0 {
		b.Duration = 100 * time.Millisecond
	}
	return b
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
