package proc

import (
	"context"
	"time"
)

// RefOf names a process by its id.
var RefOf = refOf

// GraceWithin is the grace time that a context leaves.
var GraceWithin = graceWithin

// MayBecome is the table of allowed moves.
func MayBecome(from, to State) bool { return from.mayBecome(to) }

// ParseStat returns the fields of a stat line that identify a process.
func ParseStat(line string) (state byte, pgrp, session int, ticks uint64, err error) {
	s, err := parseStat(line)
	return s.state, s.pgrp, s.session, s.startTicks, err
}

// Dead reports whether a stat line is that of a process that has ended.
func Dead(line string) (bool, error) {
	s, err := parseStat(line)
	return s.dead(), err
}

// StartHung starts a process that, as far as this package can tell, does not
// end before release is closed, and is given up killWait after KILL.
func StartHung(ctx context.Context, c Command, release <-chan struct{}, killWait time.Duration) (*Process, error) {
	return start(ctx, c, kernel{killWait: killWait, awaitEnd: func(pid int) {
		<-release
		awaitZombie(pid)
	}})
}
