// Package state is brctl's memory: runs, their attempts, events and settings,
// in one SQLite file that brctl alone writes. It is history and the place from
// which an interrupted run is taken up again. It is not what undoing depends
// on: that is the settings journal, which is readable without this package.
//
// What a call has acknowledged is on disk (WAL with synchronous=FULL, so every
// commit is an fsync): it survives kill -9 and power loss. The caller writes
// what it is about to do before it does it.
//
// Conventions of the file, for those who open it with sqlite3:
//
//   - Times are INTEGER, milliseconds since the Unix epoch in UTC; NULL is "not
//     yet". Durations are INTEGER milliseconds.
//   - Unsigned 64-bit numbers (cluster ids, timestamps of PD, sizes, fence
//     tokens) are TEXT in decimal: SQLite's integers are signed, and PD uses
//     2^64-1. They are compared for equality only.
//   - Plan, invocation, outcome, child and event data are JSON, as pkg/policy
//     names their fields.
//
// A file of a newer schema is refused and left as it is; an older one is
// migrated when it is opened for writing.
package state
