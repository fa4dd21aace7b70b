package runner

import (
	"slices"
	"strings"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// etaFrom is the progress from which a remaining time is shown: before, it
// jumps more than it tells.
const etaFrom = 0.05

// view turns events and reports of one attempt into what people see, and
// remembers which stores have the planned settings.
type view struct {
	run   *Run
	plan  policy.Plan
	cores map[string]float64 // by host
	// quota is the CPU limit of each store when the plan was made. PD's list,
	// which is all that a later look has, says nothing of it.
	quota map[uint64]float64

	last      policy.Progress
	startedAt time.Time
	seen      map[uint64]time.Time // store id → start time when its settings were last known good
	troubled  map[uint64]bool      // stores that could not be set again, said once
	said      map[string]bool      // what is worth saying once
	unheld    bool                 // the last look found no hold of ours on GC
	before    report
	now       report
}

func newView(r *Runner, run *Run) *view {
	v := &view{run: run, plan: *run.Plan, startedAt: r.deps.Now(), cores: map[string]float64{}, quota: map[uint64]float64{}, seen: map[uint64]time.Time{}, troubled: map[uint64]bool{}, said: map[string]bool{}}
	for _, h := range r.cluster.Hosts {
		v.cores[h.Name] = h.Cores
	}
	for _, s := range r.cluster.Stores {
		v.quota[s.ID] = s.Cores
	}
	v.now.stores = r.cluster.Stores
	v.settled(r.cluster.Stores...)
	return v
}

// settled remembers that stores have the planned settings now. A silent store
// was left out, and may come back without having started anew.
func (v *view) settled(stores ...policy.Store) {
	for _, s := range stores {
		if s.BackedUp() && !s.Silent {
			v.seen[s.ID] = s.StartedAt
			delete(v.troubled, s.ID)
		}
	}
}

// once reports whether a thing has not been said yet.
func (v *view) once(thing string) bool {
	said := v.said[thing]
	v.said[thing] = true
	return !said
}

// newTrouble reports whether a store's trouble has not been said yet.
func (v *view) newTrouble(id uint64) bool {
	said := v.troubled[id]
	v.troubled[id] = true
	return !said
}

func (v *view) progress(p policy.Progress) { v.last = p }

// report keeps the last two looks; CPU needs both. Where PD did not answer, the
// stores are those of the look before.
func (v *view) report(rep report) {
	if rep.stores == nil {
		rep.stores = v.now.stores
	}
	v.before, v.now = v.now, rep
}

// toSetAgain returns the stores that joined, or that started anew, since their
// settings were last known good.
func (v *view) toSetAgain(stores []policy.Store) []policy.Store {
	var again []policy.Store
	for _, s := range stores {
		if !s.BackedUp() || s.Silent {
			continue
		}
		if started, known := v.seen[s.ID]; known && started.Equal(s.StartedAt) {
			continue
		}
		if s.Cores == 0 {
			s.Cores = v.quota[s.ID]
		}
		again = append(again, s)
	}
	return again
}

func (v *view) status(now time.Time) Status {
	s := Status{Run: *v.run, Progress: v.last, Hosts: v.hosts()}
	if v.run.BackupTS != 0 {
		s.GCHold = max(0, now.Sub(v.run.BackupTS.Time()))
	}
	elapsed := now.Sub(v.startedAt)
	if v.last.Ratio > 0 && elapsed > 0 {
		s.Rate = v.plan.Forecast.RateMBPerS * v.plan.Forecast.Duration.Seconds() * v.last.Ratio / elapsed.Seconds()
	}
	if v.last.Ratio >= etaFrom && v.last.Ratio < 1 {
		s.ETA = time.Duration(float64(elapsed) * (1 - v.last.Ratio) / v.last.Ratio)
	}
	return s
}

// hosts adds up the stores of each host.
func (v *view) hosts() []HostStatus {
	byHost := map[string]*HostStatus{}
	for _, s := range v.now.stores {
		if !s.BackedUp() {
			continue
		}
		h := byHost[s.Host]
		if h == nil {
			h = &HostStatus{Host: s.Host, Cores: v.cores[s.Host]}
			byHost[s.Host] = h
		}
		g, ok := v.now.gauges[s.ID]
		if !ok {
			if s.StatusAddress != "" {
				h.Silent++
			}
			continue
		}
		if g.SoftLimitKnown {
			h.Threads, h.Known = h.Threads+g.SoftLimit, true
		}
		if was, ok := v.before.gauges[s.ID]; ok && g.CPUKnown && was.CPUKnown && was.StartedAt.Equal(g.StartedAt) {
			h.CPUKnown = true
			h.BackupCPU += g.backupCores(was)
			h.TotalCPU += g.processCores(was)
		}
	}
	out := make([]HostStatus, 0, len(byHost))
	for _, h := range byHost {
		out = append(out, *h)
	}
	slices.SortFunc(out, func(a, b HostStatus) int { return strings.Compare(a.Host, b.Host) })
	return out
}
