package plant

import "time"

// The law of business latency, calibrated in the README next to this file: the
// rise over the latency without a backup is linear in the share of the host
// that the backup takes, plus a term for saturation above two thirds load.
const (
	latencySlope      = 0.627 // rise per whole host taken by the backup
	latencySaturation = 0.73  // times the square of what lies above the knee
	latencyKnee       = 0.65  // utilization where saturation begins
)

// LatencyFactor is how much longer a business request takes when a host with
// the business load base (a share of its cores) is used to the degree u, backup
// included. It is 1 at u = base and grows with u.
func LatencyFactor(base, u float64) float64 {
	return 1 + latencySlope*(u-base) + (saturation(u) - saturation(base))
}

func saturation(u float64) float64 {
	over := max(u-latencyKnee, 0)
	return latencySaturation * over * over
}

// BusinessLatency is what a business request takes now that takes idle without
// a backup.
func (h *Host) BusinessLatency(idle time.Duration) time.Duration {
	return time.Duration(float64(idle) * LatencyFactor(h.base, h.Utilization()))
}
