package policy

import (
	"math"
	"strconv"
	"time"
)

// The units of a Breach.
const (
	unitRatio   = "ratio"
	unitSeconds = "s"
	unitRate    = "MB/s"
)

// roundingSlack keeps floating-point noise from breaking a limit that is met
// exactly.
const roundingSlack = 1e-9

// The names of the limits, as in the JSON form of Limits. The last two are
// ceilings: a rate above them is not bad for the business, it just does not
// happen, and threads beyond them would only wait.
const (
	limitHostCPU  = "max_host_cpu"
	limitDuration = "max_duration"
	limitGCHold   = "max_gc_hold"
	limitQPSDrop  = "max_qps_drop"
	limitP95Rise  = "max_p95_rise"
	limitStorage  = "storage_mb_per_s"
	limitNetwork  = "network_mb_per_s"
)

func limitNames() []string {
	return []string{limitHostCPU, limitDuration, limitGCHold, limitQPSDrop, limitP95Rise, limitStorage, limitNetwork}
}

// breaches returns the limits that p does not keep, in a fixed order. Impact is
// judged by the high end of its range, a host's CPU with its base load.
func (l Limits) breaches(p *prediction) []Breach {
	checks := [...]Breach{
		{limitHostCPU, unitRatio, l.MaxHostCPU, p.totalCPU},
		{limitDuration, unitSeconds, l.MaxDuration.Seconds(), p.duration.Seconds()},
		{limitGCHold, unitSeconds, l.MaxGCHold.Seconds(), p.duration.Seconds()},
		{limitQPSDrop, unitRatio, l.MaxQPSDrop, p.impact.qps.high},
		{limitP95Rise, unitRatio, l.MaxP95Rise, p.impact.p95.high},
		{limitStorage, unitRate, l.StorageMBPerS, p.rateMBPerS},
		{limitNetwork, unitRate, l.NetworkMBPerS, p.hostMBPerS},
	}
	var broken []Breach
	for _, c := range checks {
		if c.Max > 0 && c.Got > c.Max*(1+roundingSlack) {
			broken = append(broken, c)
		}
	}
	return broken
}

func (b Breach) isCeiling() bool { return b.Limit == limitStorage || b.Limit == limitNetwork }

// needed is the smallest value of the limit that would do, as a person writes
// it: rounded up, so that it does when it is copied into a configuration.
func (b Breach) needed() string {
	switch b.Unit {
	case unitRatio:
		return FormatRatio(math.Ceil(b.Got*1000) / 1000)
	case unitSeconds:
		return seconds(math.Ceil(b.Got)).String()
	}
	return formatRate(math.Ceil(b.Got*10) / 10)
}

func formatUnit(unit string, v float64) string {
	switch unit {
	case unitRatio:
		return FormatRatio(v)
	case unitSeconds:
		return formatDuration(seconds(v))
	}
	return formatRate(v)
}

// formatDuration writes a forecast to the second.
func formatDuration(d time.Duration) string {
	if d > time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

func formatRate(mbPerS float64) string {
	return strconv.FormatFloat(math.Round(mbPerS*10)/10, 'f', -1, 64) + " MB/s"
}
