package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// Duration is a time span written as Go and Prometheus do: "90m", "1h30m", "7d".
type Duration time.Duration

// UnmarshalText parses d. It refuses negative spans and bare numbers.
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "" {
		return fmt.Errorf("got nothing, want a duration such as 90m, 6h or 7d")
	}
	rest, days := s, time.Duration(0)
	if before, after, found := strings.Cut(s, "d"); found {
		n, err := strconv.ParseFloat(before, 64)
		if err != nil {
			return fmt.Errorf("got %q, want a duration such as 90m, 6h or 7d", s)
		}
		days, rest = time.Duration(n*24*float64(time.Hour)), after
	}
	v := time.Duration(0)
	if rest != "" {
		var err error
		if v, err = time.ParseDuration(rest); err != nil {
			return fmt.Errorf("got %q, want a duration such as 90m, 6h or 7d", s)
		}
	}
	if days+v < 0 {
		return fmt.Errorf("got %q, want a duration that is not negative", s)
	}
	*d = Duration(days + v)
	return nil
}

// MarshalText writes d as Go does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Ratio is a share, written as "80%" or 0.8.
type Ratio float64

// UnmarshalText parses r as policy.ParseRatio does.
func (r *Ratio) UnmarshalText(text []byte) error {
	v, err := policy.ParseRatio(string(text))
	*r = Ratio(v)
	return err
}

// MarshalText writes r in percent.
func (r Ratio) MarshalText() ([]byte, error) {
	return []byte(strconv.FormatFloat(float64(r)*100, 'f', -1, 64) + "%"), nil
}

// Secret is a value that never prints.
type Secret string

const hidden = "<secret>"

// String hides s.
func (s Secret) String() string { return hidden }

// GoString hides s from %#v as well.
func (s Secret) GoString() string { return hidden }

// MarshalText hides s in YAML and JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Reveal returns the secret itself. Its callers are the few places that hand
// it to a driver.
func (s Secret) Reveal() string { return string(s) }
