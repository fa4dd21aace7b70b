package policy

import (
	"strconv"
	"time"
)

// TS is a timestamp of PD's oracle: milliseconds since the Unix epoch in the
// upper 46 bits, a logical counter in the lower 18. It is unsigned because PD
// stores MaxUint64 where it means "no limit".
type TS uint64

const (
	logicalBits = 18

	// NoLimitTS is the largest TS. As a safepoint it means that its service
	// holds nothing back.
	NoLimitTS TS = 1<<64 - 1
)

// ComposeTS builds a TS from physical milliseconds and a logical counter.
func ComposeTS(physicalMillis, logical int64) TS {
	return TS(uint64(physicalMillis)<<logicalBits | uint64(logical)&(1<<logicalBits-1))
}

// TSFromTime returns the first TS of t's millisecond.
func TSFromTime(t time.Time) TS { return ComposeTS(t.UnixMilli(), 0) }

// ParseTS reads the decimal form that br and PD print.
func ParseTS(s string) (TS, error) {
	v, err := strconv.ParseUint(s, 10, 64)
	return TS(v), err
}

// Physical returns the milliseconds since the Unix epoch.
func (t TS) Physical() int64 { return int64(t >> logicalBits) }

// Time returns the wall-clock time of t in UTC, to the millisecond.
func (t TS) Time() time.Time { return time.UnixMilli(t.Physical()).UTC() }

// String returns the decimal form that br and PD print.
func (t TS) String() string { return strconv.FormatUint(uint64(t), 10) }
