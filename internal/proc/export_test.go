package proc

// RefOf, ParseStat and MayBecome open what only this package's tests need.
var RefOf = refOf

// MayBecome is the table of allowed moves.
func MayBecome(from, to State) bool { return from.mayBecome(to) }

// ParseStat returns the fields of a stat line that identify a process.
func ParseStat(line string) (state byte, pgrp, session int, ticks uint64, err error) {
	s, err := parseStat(line)
	return s.state, s.pgrp, s.session, s.startTicks, err
}
