package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/brctl/brctl/pkg/policy"
)

// Where a host's cores were read, as Host.CoresSource says it.
const (
	sourceConfigured = "configured"
	sourceQuota      = "quota"
	sourceHardware   = "cluster_hardware"
)

// hosts groups stores by the host part of their addresses and finds each host's
// cores.
func hosts(stores []policy.Store, configured map[string]float64, r readings) ([]policy.Host, []string) {
	groups := map[string][]policy.Store{}
	for _, s := range stores {
		groups[s.Host] = append(groups[s.Host], s)
	}
	var (
		out      []policy.Host
		verdicts = map[verdict][]string{}
	)
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		h, v := host(name, groups[name], configured[name], r)
		out = append(out, h)
		verdicts[v] = append(verdicts[v], describe(h, groups[name], r))
	}
	return out, slices.Concat(
		warn("hosts.<host>.cores is less than a TiKV there says it may use: %s", verdicts[contradicted]),
		warn("TiKV is bound to a part of its host, so the host's cores are unknown; set hosts.<host>.cores: %s", verdicts[bound]),
		warn("each TiKV's own limit is taken as the cores of a host with several, as nothing tells whether they are bound to parts of it; set hosts.<host>.cores to be sure: %s", verdicts[unsure]),
		warn("cores of the host are unknown; set hosts.<host>.cores: %s", verdicts[unknown]),
		sharedLabels(stores),
	)
}

// verdict is how far a host's cores can be believed.
type verdict int

const (
	sure         verdict = iota
	contradicted         // configured, but less than an instance may use
	bound                // instances may use a part of the host only
	unsure               // several instances, and nobody says what the machine has
	unknown
)

// host finds the cores of one host. A TiKV tells only its own limit, which is
// less than the host's cores when it is bound by NUMA or a CPU quota, as is
// usual with several TiKVs per host. It shows where the limit is below the
// machine's physical cores or differs between neighbours; then nothing is
// guessed. (Two instances bound to a half each of a machine with hyper-threads
// do not show: their limit equals the physical cores. The host then counts as
// half of what it is, which errs towards less load.)
func host(name string, instances []policy.Store, configured float64, r readings) (policy.Host, verdict) {
	h := policy.Host{Name: name}
	var limit, physical float64
	differ := false
	for _, s := range instances {
		if l := r.limit(s); l > 0 {
			differ = differ || limit > 0 && l != limit
			limit = max(limit, l)
			h.CoresSource = sourceOf(r.quotas[s.ID], h.CoresSource)
		}
		physical = max(physical, r.hardware[s.Address].Physical)
	}
	switch {
	case configured > 0:
		h.Cores, h.CoresSource = configured, sourceConfigured
		if configured < limit {
			return h, contradicted
		}
		return h, sure
	case limit == 0:
		return h, silence(instances)
	case differ || physical > limit:
		h.CoresSource = ""
		return h, bound
	}
	h.Cores = limit
	if len(instances) > 1 && physical == 0 {
		return h, unsure
	}
	return h, sure
}

// sourceOf prefers the quota: it is the instance's own word.
func sourceOf(quota float64, before string) string {
	if quota > 0 || before == sourceQuota {
		return sourceQuota
	}
	return sourceHardware
}

// silence: that nothing is known of a host whose stores are all silent follows
// from the warning about the stores.
func silence(instances []policy.Store) verdict {
	if slices.ContainsFunc(instances, func(s policy.Store) bool { return !s.Silent }) {
		return unknown
	}
	return sure
}

// describe is a host with what its instances say, for a warning.
func describe(h policy.Host, instances []policy.Store, r readings) string {
	var limits []string
	physical := 0.0
	for _, s := range instances {
		if l := r.limit(s); l > 0 {
			limits = append(limits, number(l))
		}
		physical = max(physical, r.hardware[s.Address].Physical)
	}
	text := h.Name
	if len(limits) > 0 {
		text += " (limit " + strings.Join(slices.Compact(limits), ", ")
		if physical > 0 {
			text += " of " + number(physical) + " physical cores"
		}
		text += ")"
	}
	return text
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// sharedLabels warns where different hosts carry one label "host": the label is
// only a hint, since PD keeps labels that were taken out of the configuration,
// but on Kubernetes it is the only thing that tells of pods on one node.
func sharedLabels(stores []policy.Store) []string {
	byLabel := map[string][]string{}
	for _, s := range stores {
		if l := s.Labels["host"]; l != "" && !slices.Contains(byLabel[l], s.Host) {
			byLabel[l] = append(byLabel[l], s.Host)
		}
	}
	var shared []string
	for _, l := range slices.Sorted(maps.Keys(byLabel)) {
		if len(byLabel[l]) > 1 {
			shared = append(shared, fmt.Sprintf("%s (%s)", l, strings.Join(byLabel[l], ", ")))
		}
	}
	return warn("several addresses carry one host label; they count as different hosts, though they may share a machine's CPU: %s", shared)
}
