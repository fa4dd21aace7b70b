package policy

import (
	"math"
	"slices"
)

// The codecs of br's --compression.
const (
	CodecLZ4    = "lz4"    // least TiKV CPU, lowest ratio
	CodecSnappy = "snappy" // fastest
	CodecZstd   = "zstd"   // smallest, most TiKV CPU, slowest; br's own default
)

// The bounds that the 2024 BR v6.5.3 measurements and br itself set.
const (
	maxUsualThreads     = 8   // "num-threads should stay within 8"
	minUsualConcurrency = 4   // the smallest tried, and br's default
	maxConcurrency      = 256 // br silently lowers anything above
	minZstdLevel        = -7
	maxZstdLevel        = 22
)

// tier is a row of the measured recommendations by cluster size. Every tier
// has lz4 or zstd, no checksum, and NAS or S3 as the medium.
type tier struct {
	name        string
	upTo        uint64 // largest X, bytes of all replicas; belongs to this tier
	bounds      string
	threads     int
	concurrency int
}

// tiers returns the table of the 2024 BR v6.5.3 measurements, smallest first.
// Its TB is 1024·1024 MiB.
func tiers() []tier {
	return []tier{
		{"small", 10 * TiB, "X <= 10TiB", 2, 16},
		{"medium", 30 * TiB, "10TiB < X <= 30TiB", 4, 64},
		{"large", math.MaxUint64, "X > 30TiB", 4, 128},
	}
}

// tierOf returns the tier of a cluster that holds x bytes in all replicas.
func tierOf(x uint64) tier {
	all := tiers()
	return all[slices.IndexFunc(all, func(t tier) bool { return x <= t.upTo })] // the last one has no bound
}

// codecFor returns the codec that the measurements recommend for a goal.
func codecFor(g Goal) string {
	switch g {
	case GoalSpeed:
		return CodecSnappy
	case GoalSpace:
		return CodecZstd
	case GoalImpact, GoalBalanced:
		return CodecLZ4
	}
	return CodecLZ4
}

// codecTrait says what a codec is good and bad at.
func codecTrait(codec string) string {
	switch codec {
	case CodecSnappy:
		return "snappy is the fastest codec"
	case CodecZstd:
		return "zstd makes the smallest backup for the most TiKV CPU, about 4 points of QPS more than lz4"
	}
	return "lz4 takes the least TiKV CPU and makes the largest backup"
}
