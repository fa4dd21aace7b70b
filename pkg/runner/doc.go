// Package runner drives one backup of one cluster from its first check to its
// last record, as a persisted state machine.
//
// A Run is written to Records before each step begins, and every step is
// written so that it can be entered again: starting a run is resuming it from
// its first step, and recovering a run that died is resuming it from StepEnd.
//
//	lease → preflight → plan → apply → settle → backup → verify ┐
//	                 any failure or cancellation ───────────────┤
//	                                                            ▼
//	                                            end → restore → record
//
// The forward steps run under the caller's context. The three last ones undo
// and record; they run under a context that survives cancellation, each with a
// limit of its own, and are reached whatever happened before.
//
// The runner knows br, PD, TiDB and the database only through the small
// interfaces that it declares; internal/app plugs the real ones in.
package runner
