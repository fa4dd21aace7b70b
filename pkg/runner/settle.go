package runner

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

const (
	settlePoll = time.Second
	// unansweredLimit is how long a status port that does not answer keeps br
	// from starting; one that never does is noted, as a missing gauge is.
	unansweredLimit = 15 * time.Second
)

// settling is how far the TiKVs are from the planned threads.
type settling struct {
	above      []string // run more threads than planned
	unanswered []string // their status port did not answer
	unknown    []string // they answer, and do not say
}

// settle waits until every TiKV runs no more backup threads than planned: its
// soft limit may still be an older, higher value until its next tick.
func (r *Runner) settle(ctx context.Context, run *Run) error {
	limit := threadsByInstance(run.Plan.Settings)
	began := r.deps.Now()
	for {
		s := r.settling(ctx, limit)
		waited := r.deps.Now().Sub(began)
		if len(s.above) == 0 && (len(s.unanswered) == 0 || waited >= min(unansweredLimit, r.req.SettleTimeout)) {
			s.warn(run)
			return nil
		}
		if waited > r.req.SettleTimeout {
			return because(policy.ReasonSettings, "wait for TiKV to apply the thread limit: after %s still above it: %s",
				r.req.SettleTimeout, few(s.above))
		}
		r.observe(run, Status{Note: "waiting for the thread limit on " + few(append(s.above, s.unanswered...))})
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(settlePoll):
		}
	}
}

func (s settling) warn(run *Run) {
	if len(s.unanswered) > 0 {
		run.warn("applied threads are unknown (no answer of the status port) on " + few(s.unanswered))
	}
	if len(s.unknown) > 0 {
		run.warn("applied threads are unknown (no tikv_backup_softlimit) on " + few(s.unknown))
	}
}

func (r *Runner) settling(ctx context.Context, limit map[string]int) settling {
	var out settling
	stores := r.cluster.BackupStores()
	gauges := r.gauges(ctx, stores)
	for _, s := range stores {
		want, planned := limit[s.Address]
		g, answered := gauges[s.ID]
		switch {
		case !planned:
		case s.StatusAddress == "", answered && !g.SoftLimitKnown:
			out.unknown = append(out.unknown, s.Address)
		case !answered:
			out.unanswered = append(out.unanswered, s.Address)
		case g.SoftLimit > want:
			out.above = append(out.above, fmt.Sprintf("%s (%d, want %d)", s.Address, g.SoftLimit, want))
		}
	}
	return out
}

func threadsByInstance(settings []policy.Setting) map[string]int {
	limit := make(map[string]int, len(settings))
	for _, s := range settings {
		if s.Name != policy.ItemNumThreads {
			continue
		}
		if n, err := strconv.Atoi(s.Want); err == nil {
			limit[s.Instance] = n
		}
	}
	return limit
}

// few names the first of many: a line must be readable with a thousand TiKVs.
func few(items []string) string {
	const shown = 4
	if len(items) <= shown {
		return strings.Join(items, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(items[:shown], ", "), len(items)-shown)
}
