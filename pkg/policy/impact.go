package policy

// Impact on the business, from the 2024 BR v6.5.3 measurements: the range of
// QPS drop and p95 rise over all tried settings, at two base loads and on two
// media. The measurements do not say which setting made which end, so the way
// from a plan to a number is ours:
//
//	intensity a = (backup's share of host CPU) ÷ 1/3, clamped to 0…1
//	impact      = 0 at a = 0, the range's low end at a = 1/8, its high end at
//	              a = 1, linear between these three points
//
// 1/3 is the largest share among the measurements' own recommendations (16
// threads on 48 vCPU). The share in the formula is what the threads can take at
// most; with T = 4 and C = 4 they took 640 % on average and 1395 % at most. The
// low end of a forecast is therefore the impact at 640/1395 of the intensity,
// the high end the impact at the whole of it.
const (
	fullIntensityShare = 1.0 / 3
	kneeIntensity      = 1.0 / 8
	averageOfCeiling   = 640.0 / 1395

	lowBase  = 0.25 // the two measured base loads
	highBase = 0.65

	// zstdExtraQPS is what zstd costs more than lz4, in QPS. The ranges were
	// taken over all codecs; adding it on top is the cautious reading.
	zstdExtraQPS = 0.04
)

// assumedBaseLoad stands in for a base load that nobody measured or configured:
// the busier of the two measured ones, which forecasts more QPS loss.
const assumedBaseLoad = highBase

// span is a measured range.
type span struct{ low, high float64 }

// measured holds the ranges of one medium at the two base loads.
type measured struct{ qpsIdle, qpsBusy, p95Idle, p95Busy span }

// measuredOn returns the measurements for a medium. S3 counts as NAS: the
// authors recommend both for the same reason.
func measuredOn(m Medium) measured {
	if m == MediumNVMe {
		return measured{
			qpsIdle: span{0.07, 0.155}, qpsBusy: span{0.10, 0.25},
			p95Idle: span{0.155, 0.445}, p95Busy: span{0.085, 0.335},
		}
	}
	return measured{
		qpsIdle: span{0.068, 0.118}, qpsBusy: span{0.105, 0.235},
		p95Idle: span{0.104, 0.21}, p95Busy: span{0.105, 0.30},
	}
}

// impact is the forecast for one host: QPS drop and p95 rise, as ratios.
type impact struct{ qps, p95 span }

// impactOn forecasts the impact on a host whose business uses base of it and
// whose backup threads can take share of it, both 0..1. Outside the measured
// base loads the nearest one counts. On NVMe p95 rises more at the lower base
// load (the rise is relative to a small latency); that is reported as measured.
func impactOn(m measured, base, share float64, codec string) impact {
	w := clamp((base-lowBase)/(highBase-lowBase), 0, 1)
	qps, p95 := between(m.qpsIdle, m.qpsBusy, w), between(m.p95Idle, m.p95Busy, w)
	high := clamp(share/fullIntensityShare, 0, 1)
	low := high * averageOfCeiling
	out := impact{
		qps: span{at(qps, low), at(qps, high)},
		p95: span{at(p95, low), at(p95, high)},
	}
	if codec == CodecZstd {
		out.qps.low += zstdExtraQPS * min(1, low/kneeIntensity)
		out.qps.high += zstdExtraQPS * min(1, high/kneeIntensity)
	}
	return out
}

// at is the impact at an intensity of 0..1 within a measured range.
func at(s span, intensity float64) float64 {
	if intensity < kneeIntensity {
		return s.low * intensity / kneeIntensity
	}
	return s.low + (s.high-s.low)*(intensity-kneeIntensity)/(1-kneeIntensity)
}

func between(a, b span, w float64) span {
	return span{a.low + (b.low-a.low)*w, a.high + (b.high-a.high)*w}
}

// extrapolated reports whether a base load lies outside the measured ones.
func extrapolated(base float64) bool { return base < lowBase || base > highBase }

func clamp(v, low, high float64) float64 { return max(low, min(v, high)) }

// ManualImpact is PingCAP's own estimate of the QPS drop (manual, "TiDB snapshot
// backup and restore guide", v5.4 and later) for at most 8 threads, by the
// total CPU use of TiKV's host during the backup, business included, 0..1:
// almost none up to 60 %, at most about 10 % up to 75 %, at most about 20 % up
// to 80 %. It returns false above that: the manual says nothing.
func ManualImpact(totalCPU float64) (Range, bool) {
	const source = "PingCAP's manual, by total CPU"
	switch {
	case totalCPU <= 0.60:
		return Range{Source: source}, true
	case totalCPU <= 0.75:
		return Range{High: 0.10, Source: source}, true
	case totalCPU <= 0.80:
		return Range{High: 0.20, Source: source}, true
	}
	return Range{}, false
}
