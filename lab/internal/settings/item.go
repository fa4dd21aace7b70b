package settings

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
)

type kind int

const (
	number kind = iota
	flag
	text
	duration
	size
)

// item is one entry of the stand-in's configuration.
type item struct {
	kind   kind
	value  any  // default: float64, bool or string as JSON has them
	online bool // false: only a restart changes it, SET CONFIG is refused
}

// Instance is what the defaults depend on.
type Instance struct {
	Quota           float64 // cores this instance believes it has
	BatchSize       int
	RefreshInterval time.Duration
	RegionSize      int64
	Address         string
	StatusAddress   string
}

// DefaultThreads is TiKV's default of backup.num-threads.
func DefaultThreads(quota float64) int {
	return int(min(max(quota*0.5, 1), 8))
}

func items(in Instance) map[string]item {
	online := func(k kind, v any) item { return item{kind: k, value: v, online: true} }
	fixed := func(k kind, v any) item { return item{kind: k, value: v} }
	regionSize := formatSize(in.RegionSize)
	return map[string]item{
		"backup.num-threads":                online(number, float64(DefaultThreads(in.Quota))),
		"backup.batch-size":                 online(number, float64(in.BatchSize)),
		"backup.sst-max-size":               online(size, formatSize(in.RegionSize*3/2)),
		"backup.enable-auto-tune":           online(flag, true),
		"backup.auto-tune-remain-threads":   online(number, math.Round(in.Quota*0.2)),
		"backup.auto-tune-refresh-interval": online(duration, FormatDuration(in.RefreshInterval)),
		"backup.io-thread-size":             online(number, 2.0),
		"backup.s3-multi-part-size":         online(size, "5MiB"),
		"coprocessor.region-split-size":     online(size, regionSize),
		"coprocessor.region-split-keys":     online(number, float64(max(in.RegionSize/100, 1))),
		"coprocessor.region-max-size":       online(size, formatSize(in.RegionSize*3/2)),
		"log.level":                         online(text, "info"),
		"readpool.unified.max-thread-count": online(number, max(4, math.Floor(in.Quota*0.8))),
		"readpool.unified.min-thread-count": fixed(number, 1.0),
		"server.addr":                       fixed(text, in.Address),
		"server.advertise-addr":             fixed(text, in.Address),
		"server.advertise-status-addr":      fixed(text, in.StatusAddress),
		"server.grpc-concurrency":           fixed(number, 5.0),
		"server.status-addr":                fixed(text, in.StatusAddress),
		"storage.reserve-space":             fixed(size, "5GiB"),
	}
}

// parse turns a value of SET CONFIG into the form in which the configuration shows it.
func (it item) parse(v any) (any, error) {
	s := fmt.Sprint(v)
	if f, ok := v.(float64); ok {
		s = strconv.FormatFloat(f, 'f', -1, 64)
	}
	bad := fmt.Errorf("failed to parse: %s", s)
	switch it.kind {
	case number:
		n, err := strconv.ParseUint(s, 10, 53)
		if err != nil {
			return nil, bad
		}
		return float64(n), nil
	case flag:
		b, err := strconv.ParseBool(s)
		if err != nil {
			return nil, bad
		}
		return b, nil
	case duration:
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			return nil, bad
		}
		return FormatDuration(d), nil
	case size:
		n, err := units.RAMInBytes(s)
		if err != nil {
			return nil, bad
		}
		return formatSize(n), nil
	default:
		return s, nil
	}
}

// normalize applies TiKV's validation rules: a bad value is not an error, another one quietly takes its place.
func normalize(name string, v, deflt any, quota float64) any {
	n, _ := v.(float64)
	switch name {
	case "backup.num-threads":
		if n == 0 || n > math.Floor(quota) {
			return deflt
		}
	case "backup.batch-size":
		if n == 0 {
			return 8.0
		}
	case "backup.s3-multi-part-size":
		if b, _ := units.RAMInBytes(v.(string)); b > 5<<30 {
			return deflt
		}
	}
	return v
}

// FormatDuration prints a duration as TiKV does: "1m", not "1m0s".
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func formatSize(n int64) string {
	names := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for n != 0 && n%1024 == 0 && i < len(names)-1 {
		n /= 1024
		i++
	}
	return strconv.FormatInt(n, 10) + names[i]
}
