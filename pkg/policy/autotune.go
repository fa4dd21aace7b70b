package policy

import (
	"fmt"
	"math"
	"time"
)

// autoTuneSpareShare of an instance's cores is what TiKV's auto-tune keeps free by
// default (backup.auto-tune-remain-threads).
const autoTuneSpareShare = 0.2

// autoTuned is how many of the threads that were asked for TiKV's auto-tune lets
// run, on an instance that may use cores and whose other threads use busy of them:
//
//	spare = round(0.2 · cores)
//	runs  = max(1, floor(cores − busy)) − spare, within [1, threads]
//
// TiKV looks again at every refresh interval, so this holds for as long as the
// load does. It sees its own process only: what else runs on the host does not
// count. (TiKV's components/backup/src/softlimit.rs and src/config, v6.5 … v8.5.)
func autoTuned(threads int, cores, busy float64) int {
	idle := max(1, math.Floor(cores-busy+roundingSlack))
	return int(min(max(1, idle-math.Round(autoTuneSpareShare*cores)), float64(threads)))
}

// autoTuneWarnings tells where TiKV itself would run fewer threads than planned.
// The forecast stays the planned one: nobody knows the load of the hours to come.
// A host's base load is taken to be spread evenly over its TiKVs; where it is
// only assumed, or cores are unknown, there is nothing to say.
func (p *planner) autoTuneWarnings(c candidate) []string {
	on := make([]int, len(p.model.hosts)) // instances
	for _, s := range p.model.stores {
		on[s.host]++
	}
	var fewer []string
	var slowest time.Duration
	for _, s := range p.model.stores {
		if !s.works {
			continue
		}
		planned := s.threads(c.threads)
		runs := planned
		if h := p.model.hosts[s.host]; s.autoTune && s.cores > 0 && h.cores > 0 && !h.assumed {
			runs = autoTuned(planned, s.cores, h.base*h.cores/float64(on[s.host]))
		}
		if runs < planned {
			fewer = append(fewer, fmt.Sprintf("%d of %d on %s", runs, planned, s.address))
		}
		slowest = max(slowest, seconds(s.leaderMB/p.model.storeRate(runs)))
	}
	if len(fewer) == 0 {
		return nil
	}
	text := "TiKV's auto-tune may run fewer threads than planned while the base load lasts: " + nameSome(fewer)
	if slowest > c.prediction.duration {
		text += fmt.Sprintf("; the backup would take %s instead of %s", formatDuration(slowest), formatDuration(c.prediction.duration))
	}
	return []string{text}
}
