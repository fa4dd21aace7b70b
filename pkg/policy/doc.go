// Package policy is the domain leaf of brctl: the words every other package
// speaks (stores, settings, plans, runs, outcomes) and the pure decisions made
// over them (impact model, planner, version capabilities).
//
// It does no I/O, reads no clock, starts no goroutine and imports the standard
// library only, so that every decision can be tested from a table and replayed
// from a record. Everything that decides also says why: plans, refusals and
// outcomes carry reasons meant for a person.
package policy
