// Package br speaks the dialect of PingCAP's backup tool br, behind the words
// of package policy: it freezes an invocation, starts it as one attempt, turns
// what br prints and logs into events and an outcome, ends a br that an earlier
// life left behind, and reads a finished backup back from its storage.
//
// It never judges success by the exit code alone (br has ended with 0 without a
// backup), never adds --check-requirements=false, never changes the order or
// the bytes of the arguments of a run (br's checkpoint refuses to resume when
// they differ), and puts no secret into arguments, events, outcomes or files.
//
// The runner calls it through an interface of the runner's own. What is said
// here about br's behaviour was read in, or seen with, br of the 8.5 line.
package br
