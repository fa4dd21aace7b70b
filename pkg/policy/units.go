package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

type byteUnit struct {
	name string
	size uint64
}

// byteUnits returns the IEC units, largest first. Only these are read: "TB"
// means 10^12 to some readers and 1024·1024 MiB to others, and a backup planned
// on the wrong one is 10 % off.
func byteUnits() []byteUnit {
	return []byteUnit{{"PiB", 1 << 50}, {"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", 1 << 10}, {"B", 1}}
}

// ParseBytes reads a size such as "10TiB", "7.163TiB", "96 MiB" or "4096"
// (bytes). Units are IEC, 1 TiB = 1024 GiB; a fraction is rounded to a byte.
func ParseBytes(s string) (uint64, error) {
	number, unit, err := splitUnit(s)
	if err != nil {
		return 0, err
	}
	size, err := unitSize(s, unit)
	if err != nil {
		return 0, err
	}
	if whole, err := strconv.ParseUint(number, 10, 64); err == nil {
		if whole > math.MaxUint64/size {
			return 0, fmt.Errorf("size %q is larger than 16 EiB", s)
		}
		return whole * size, nil
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("size %q is not a number with a unit (want 10TiB, 300GiB, 96MiB)", s)
	}
	f = math.Round(f * float64(size))
	if f >= math.MaxUint64 {
		return 0, fmt.Errorf("size %q is larger than 16 EiB", s)
	}
	return uint64(f), nil
}

// splitUnit cuts a size into its digits and what follows them.
func splitUnit(s string) (number, unit string, err error) {
	trimmed := strings.TrimSpace(s)
	end := strings.IndexFunc(trimmed, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end < 0 {
		return trimmed, "", nil
	}
	if end == 0 {
		return "", "", fmt.Errorf("size %q does not start with a digit (want 10TiB, 300GiB, 96MiB)", s)
	}
	return trimmed[:end], strings.TrimSpace(trimmed[end:]), nil
}

func unitSize(s, unit string) (uint64, error) {
	if unit == "" {
		return 1, nil
	}
	for _, u := range byteUnits() {
		if u.name == unit {
			return u.size, nil
		}
	}
	return 0, fmt.Errorf("size %q has the unit %q (want B, KiB, MiB, GiB, TiB or PiB)", s, unit)
}

// FormatBytes writes n in the largest unit that it fills, with up to three
// decimals: "10TiB", "7.163TiB", "0B".
func FormatBytes(n uint64) string {
	for _, u := range byteUnits() {
		if n < u.size {
			continue
		}
		text := strconv.FormatFloat(float64(n)/float64(u.size), 'f', 3, 64)
		return strings.TrimRight(strings.TrimRight(text, "0"), ".") + u.name
	}
	return "0B"
}

// ParseRatio reads a share as "80%" or "0.8". A plain number above 1 is
// refused, because "80" may mean either; with a percent sign it may exceed 100.
func ParseRatio(s string) (float64, error) {
	trimmed := strings.TrimSpace(s)
	number, percent := strings.CutSuffix(trimmed, "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0 {
		return 0, fmt.Errorf("ratio %q is not a share (want 80%% or 0.8)", s)
	}
	if percent {
		return f / 100, nil
	}
	if f > 1 {
		return 0, fmt.Errorf("ratio %q is above 1 (want %s%% or a number from 0 to 1)", s, trimmed)
	}
	return f, nil
}

// FormatRatio writes a share as a percentage with at most one decimal: "16.7%".
func FormatRatio(r float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(r*100, 'f', 1, 64), ".0") + "%"
}

// formatTiKVDuration writes d as TiKV's SHOW CONFIG prints it: "10s", "1m",
// "1m30s". Anything below a millisecond is dropped.
func formatTiKVDuration(d time.Duration) string {
	units := []struct {
		name string
		size time.Duration
	}{
		{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond},
	}
	var b strings.Builder
	for _, u := range units {
		if d >= u.size {
			fmt.Fprintf(&b, "%d%s", d/u.size, u.name)
			d %= u.size
		}
	}
	if b.Len() == 0 {
		return "0s"
	}
	return b.String()
}
