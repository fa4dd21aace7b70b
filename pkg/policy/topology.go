package policy

import (
	"slices"
	"strings"
)

const defaultReplicas = 3 // the measurements write X / 3

// topology is what planning needs of a Cluster, computed once: asking a Cluster
// sorts and copies its stores each time.
type topology struct {
	cluster   Cluster
	backup    []Store // those that br will ask, by address
	live      []Store // those of them that answer
	usedBytes uint64  // X, over backup
	replicas  int     // r, assumed when unknown
}

func newTopology(c Cluster) topology {
	t := topology{cluster: c, backup: c.BackupStores(), replicas: c.Replicas}
	for _, s := range t.backup {
		t.usedBytes += s.UsedBytes
		if !s.Silent {
			t.live = append(t.live, s)
		}
	}
	if t.replicas == 0 {
		t.replicas = defaultReplicas
	}
	t.fillCores()
	return t
}

// fillCores lets a host's cores bound its instances where theirs are unknown.
func (t *topology) fillCores() {
	cores := make(map[string]float64, len(t.cluster.Hosts))
	for _, h := range t.cluster.Hosts {
		cores[h.Name] = h.Cores
	}
	for i := range t.live {
		if s := &t.live[i]; s.Cores == 0 {
			s.Cores = cores[s.hostName()]
		}
	}
}

// hosts returns the hosts of the live stores, by name.
func (t *topology) hosts(o Options) []modelHost {
	known := make(map[string]Host, len(t.cluster.Hosts))
	for _, h := range t.cluster.Hosts {
		known[h.Name] = h
	}
	var hosts []modelHost
	seen := make(map[string]bool, len(t.cluster.Hosts))
	for _, s := range t.live {
		name := s.hostName()
		if seen[name] {
			continue
		}
		seen[name] = true
		h := modelHost{name: name, cores: known[name].Cores}
		h.base, h.assumed = baseLoad(known[name], o)
		hosts = append(hosts, h)
	}
	slices.SortFunc(hosts, func(a, b modelHost) int { return strings.Compare(a.name, b.name) })
	return hosts
}

// baseLoad returns the share of a host that the business uses, and whether it
// is an assumption.
func baseLoad(h Host, o Options) (base float64, assumed bool) {
	switch {
	case o.BaseLoad != nil:
		return *o.BaseLoad, false
	case h.BaseKnown:
		return h.BaseLoad, false
	case h.BaseLoad > 0:
		return h.BaseLoad, true
	}
	return assumedBaseLoad, true
}

func (s Store) hostName() string {
	if s.Host != "" {
		return s.Host
	}
	return HostOf(s.Address)
}

// carries reports whether a store has the label "key:value"; without a label
// every store does.
func carries(s Store, label string) bool {
	if label == "" {
		return true
	}
	key, value, _ := strings.Cut(label, ":")
	got, ok := s.Labels[key]
	return ok && got == value
}
