package tidbcfg

import (
	"strconv"
	"strings"
	"time"
)

// SameValue reports whether two spellings mean the same value to TiKV, which
// prints values in its own way: "60s" comes back as "1m", "5242880" as "5MiB".
//
// Units are those of TiKV's ReadableDuration (d, h, m, s, ms, us, ns, combined
// as in "1h30m") and ReadableSize (B, KB, KiB … PiB, all binary). A size and a
// plain number are comparable; a duration needs its unit.
func SameValue(a, b string) bool {
	a, b = strings.TrimSpace(a), strings.TrimSpace(b)
	if a == b {
		return true
	}
	if da, ok := parseDuration(a); ok {
		db, ok := parseDuration(b)
		return ok && da == db
	}
	na, okA := parseSize(a)
	nb, okB := parseSize(b)
	return okA && okB && na == nb
}

const day = 24 * time.Hour

// parseDuration reads TiKV's durations: Go's, with days in front.
func parseDuration(s string) (time.Duration, bool) {
	var days time.Duration
	if head, rest, found := strings.Cut(s, "d"); found {
		n, err := strconv.ParseUint(head, 10, 16)
		if err != nil {
			return 0, false
		}
		if days = time.Duration(n) * day; rest == "" {
			return days, true
		}
		s = rest
	}
	if s == "" || s[0] < '0' || s[0] > '9' || isNumber(s) {
		return 0, false
	}
	d, err := time.ParseDuration(s)
	return days + d, err == nil && days+d >= days
}

// parseSize reads a whole number of bytes with an optional unit.
func parseSize(s string) (uint64, bool) {
	end := strings.LastIndexAny(s, "0123456789") + 1
	n, err := strconv.ParseUint(s[:end], 10, 64)
	if err != nil {
		return 0, false
	}
	shift, ok := sizeShift(strings.TrimSpace(s[end:]))
	if !ok || n<<shift>>shift != n {
		return 0, false
	}
	return n << shift, true
}

func sizeShift(unit string) (uint, bool) {
	switch unit {
	case "", "B":
		return 0, true
	case "K", "KB", "KiB":
		return 10, true
	case "M", "MB", "MiB":
		return 20, true
	case "G", "GB", "GiB":
		return 30, true
	case "T", "TB", "TiB":
		return 40, true
	case "P", "PB", "PiB":
		return 50, true
	}
	return 0, false
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
}
