package plant

import (
	"strconv"
	"strings"
)

// poolRule says how the thread pool follows num-threads when a request arrives.
// No version resizes it at any other moment.
type poolRule int

const (
	// poolKeepsLargest, up to v8.5.1: no pool before the first request; growth
	// builds a new one; a shrink by lazyShrink threads or fewer is ignored.
	poolKeepsLargest poolRule = iota
	// poolFollows, from v8.5.2: a pool from the start; any change builds a new one.
	poolFollows
)

// lazyShrink is how many surplus threads the older pool tolerates.
const lazyShrink = 10

// ruleFor picks the rule by TiKV version, such as "8.5.0" or "v9.0.0-beta.1".
// A version that cannot be read is taken as new.
func ruleFor(version string) poolRule {
	v, ok := parseVersion(version)
	if ok && less(v, [3]int{8, 5, 2}) {
		return poolKeepsLargest
	}
	return poolFollows
}

// resize returns the size of the pool for a request that finds a pool of size
// old (0: none yet) and num-threads at want.
func (r poolRule) resize(old, want int) int {
	if r == poolKeepsLargest && old >= want && old-want <= lazyShrink {
		return old
	}
	return want
}

// threadName is the raw OS thread name of the workers in the generation-th pool
// of a process. The older pool reuses one name; the newer numbers its rebuilds.
func (r poolRule) threadName(generation int) string {
	if r == poolKeepsLargest {
		return "bkwkr"
	}
	return "bkwkr-v" + strconv.Itoa(generation)
}

func parseVersion(s string) (v [3]int, ok bool) {
	s = strings.TrimPrefix(s, "v")
	if i := strings.IndexAny(s, "-+"); i >= 0 {
		s = s[:i]
	}
	parts := strings.Split(s, ".")
	if len(parts) != len(v) {
		return v, false
	}
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil {
			return v, false
		}
		v[i] = n
	}
	return v, true
}

func less(a, b [3]int) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}
