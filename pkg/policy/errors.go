package policy

import (
	"errors"
	"fmt"
	"strings"
)

// Sentinels of MakePlan, found by errors.Is in an *InputError.
var (
	// ErrNoStores says that no TiKV store is up, or offline with leaders.
	ErrNoStores = errors.New("no usable TiKV store")
	// ErrAllSilent says that no TiKV store sends heartbeats to PD.
	ErrAllSilent = errors.New("every TiKV store is silent")
)

// Problem is one thing that is wrong with a plan's input.
type Problem struct {
	Field string `json:"field"` // "num_threads", "limits.max_host_cpu", "cluster.stores"
	Text  string `json:"text"`  // what is wrong and what to do
	Err   error  `json:"-"`     // a sentinel, or nil
}

// InputError says everything that is wrong with a plan's input.
type InputError struct{ Problems []Problem }

func (e *InputError) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, p.Field+": "+p.Text)
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the sentinels among the problems.
func (e *InputError) Unwrap() []error {
	var errs []error
	for _, p := range e.Problems {
		if p.Err != nil {
			errs = append(errs, p.Err)
		}
	}
	return errs
}

// Breach is a limit that a plan does not keep.
type Breach struct {
	Limit string  `json:"limit"` // as in Limits: "max_duration"
	Unit  string  `json:"unit"`  // "ratio", "s" or "MB/s"
	Max   float64 `json:"max"`
	Got   float64 `json:"got"`
}

func (b Breach) String() string {
	return fmt.Sprintf("%s is %s, %s over %s", b.Limit, b.format(b.Got), b.format(b.Got-b.Max), b.format(b.Max))
}

func (b Breach) format(v float64) string { return formatUnit(b.Unit, v) }

// excess is by which part of the limit it is exceeded; it makes limits of
// different units comparable.
func (b Breach) excess() float64 { return (b.Got - b.Max) / b.Max }

// UnmetError says that no plan meets the limits, or, in tiered mode, that the
// tier's plan does not. No limit is ever relaxed silently: what would help is
// listed and left to a person.
type UnmetError struct {
	Mode     Mode        `json:"mode"`
	Nearest  Alternative `json:"nearest"`  // the plan that comes nearest
	Breaches []Breach    `json:"breaches"` // the limits that Nearest breaks
	Remedies []string    `json:"remedies"` // what would meet the rest
}

func (e *UnmetError) Error() string {
	broken := make([]string, 0, len(e.Breaches))
	for _, b := range e.Breaches {
		broken = append(broken, b.String())
	}
	subject := "no plan meets the limits; nearest"
	if e.Mode == ModeTiered {
		subject = "the tier's plan does not meet the limits"
	}
	return fmt.Sprintf("%s: num-threads %d, concurrency %d, %s: %s; what would: %s", subject,
		e.Nearest.NumThreads, e.Nearest.Concurrency, e.Nearest.Compression,
		strings.Join(broken, ", "), strings.Join(e.Remedies, "; or "))
}
