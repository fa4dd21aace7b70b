package policy_test

import (
	"math"
	"strings"
	"testing"

	"github.com/brctl/brctl/pkg/policy"
)

func TestSizesAreReadInIECUnits(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "4096": 4096, "1B": 1, "1KiB": 1024, "96MiB": 96 * policy.MiB, "300 GiB": 300 * policy.GiB, " 10TiB ": 10 * policy.TiB,
		"7.163TiB": 7875801789759, "0.5KiB": 512, "1.5": 2, "16383PiB": 16383 << 50,
	} {
		got, err := policy.ParseBytes(text)
		if err != nil || got != want {
			t.Errorf("%q: got %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestUnreadableSizesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":           "not a number with a unit",
		"10TB":       `has the unit "TB"`,
		"10T":        `has the unit "T"`,
		"10tib":      `has the unit "tib"`,
		"TiB":        "does not start with a digit",
		"-1GiB":      "does not start with a digit",
		"1.2.3GiB":   "not a number with a unit",
		"16384PiB":   "larger than 16 EiB",
		"99999.5PiB": "larger than 16 EiB",
	} {
		if got, err := policy.ParseBytes(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %d, %v; want an error with %q", text, got, err, want)
		}
	}
}

func TestSizesAreWrittenInTheLargestUnit(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0B", 1: "1B", 1023: "1023B", 1024: "1KiB", 96 * policy.MiB: "96MiB", 10 * policy.TiB: "10TiB", 7875801789759: "7.163TiB", 100 * policy.GiB: "100GiB",
	} {
		if got := policy.FormatBytes(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}

func TestRatiosAreReadAsPercentOrShare(t *testing.T) {
	for text, want := range map[string]float64{"80%": 0.8, "0.8": 0.8, "0": 0, "1": 1, "150 %": 1.5, " 16.7% ": 0.167} {
		if got, err := policy.ParseRatio(text); err != nil || math.Abs(got-want) > 1e-12 {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"80", "1.01", "-1%", "", "%", "NaN", "Inf%", "eighty"} {
		if got, err := policy.ParseRatio(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
	if got := policy.FormatRatio(1.0 / 6); got != "16.7%" {
		t.Errorf("got %s, want 16.7%%", got)
	}
}

func FuzzParseBytes(f *testing.F) {
	for _, s := range []string{"10TiB", "7.163TiB", "96 MiB", "0", "", "18446744073709551615", "1e9", "99999999999PiB", ".5GiB", "1..2B"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := policy.ParseBytes(s)
		if err != nil || n > 1<<63 { // rounding up may pass what a uint64 holds
			return
		}
		again, err := policy.ParseBytes(policy.FormatBytes(n))
		if err != nil {
			t.Fatalf("%q: %s does not parse back: %v", s, policy.FormatBytes(n), err)
		}
		// Three decimals of the largest unit are kept.
		if diff := math.Abs(float64(again) - float64(n)); diff > float64(n)/1000 {
			t.Errorf("%q: %d came back as %d", s, n, again)
		}
	})
}
