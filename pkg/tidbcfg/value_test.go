package tidbcfg_test

import (
	"testing"

	"github.com/brctl/brctl/pkg/tidbcfg"
)

func TestSameValueKnowsTiKVsSpellings(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{"4", "4", true},
		{"4", "04", true},
		{"4", "8", false},
		{"60s", "1m", true},
		{"60s", "1m0s", true},
		{"90m", "1h30m", true},
		{"24h", "1d", true},
		{"1d12h", "36h", true},
		{"10s", "10000ms", true},
		{"10s", "11s", false},
		{"10s", "10", false},
		{"10", "10s", false},
		{"5MiB", "5MB", true},
		{"5MiB", "5242880", true},
		{"1GiB", "1024MiB", true},
		{"1m", "1M", false},
		{"5MiB", "6MiB", false},
		{"true", "true", true},
		{"true", "false", false},
		{"", "0", false},
		{"", "", true},
		{"16777216TiB", "0", false},
		{"d", "0s", false},
	}
	for _, tt := range tests {
		if got := tidbcfg.SameValue(tt.a, tt.b); got != tt.want {
			t.Errorf("SameValue(%q, %q) = %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

func FuzzSameValueIsAnEquivalence(f *testing.F) {
	for _, s := range []string{"", "4", "60s", "1m", "1d", "5MiB", "5242880", "d", "1d-5s", "true", "9999999d"} {
		f.Add(s, "1m")
		f.Add("5MB", s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if !tidbcfg.SameValue(a, a) {
			t.Errorf("%q is not the same as itself", a)
		}
		if tidbcfg.SameValue(a, b) != tidbcfg.SameValue(b, a) {
			t.Errorf("%q and %q depend on the order", a, b)
		}
	})
}
