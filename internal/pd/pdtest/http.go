package pdtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/brctl/brctl/pkg/policy"
)

// ServeHTTP answers as PD's HTTP API does.
func (m *member) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.wait(r.Context())
	m.mu.Lock()
	m.requests[r.URL.Path]++
	verbatim, ok := m.replies[r.URL.Path]
	m.mu.Unlock()
	switch {
	case ok && verbatim.status != 0:
		w.WriteHeader(verbatim.status)
		fmt.Fprint(w, verbatim.body)
	case m.pd.leads(NoLeader):
		http.Error(w, "[PD:apiutil:ErrRedirectNoLeader]redirect finds no leader", http.StatusServiceUnavailable)
	default:
		m.pd.serveJSON(w, r)
	}
}

func (f *FakePD) serveJSON(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var answer any
	switch r.URL.Path {
	case "/pd/api/v1/stores":
		answer = f.storesJSON(r.URL.Query()["state"])
	case "/pd/api/v1/config/cluster-version":
		answer = Version
	case "/pd/api/v1/config/replicate":
		answer = map[string]any{"max-replicas": f.replicas, "location-labels": "host"}
	case "/pd/api/v1/gc/safepoint":
		answer = f.safePointsJSON()
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	_ = json.NewEncoder(w).Encode(answer) // the client has gone
}

// storesJSON leaves tombstones out unless asked, and zeros as protobuf does.
func (f *FakePD) storesJSON(states []string) any {
	list := []any{}
	for _, s := range f.stores {
		number := stateNumber(s.State)
		if len(states) == 0 && s.State == policy.StoreTombstone ||
			len(states) > 0 && !slices.Contains(states, fmt.Sprint(number)) {
			continue
		}
		list = append(list, map[string]any{"store": f.metaJSON(s, number), "status": map[string]any{
			"capacity": "7.163TiB", "leader_count": s.LeaderCount, "region_count": s.RegionCount,
		}})
	}
	return map[string]any{"count": len(list), "stores": list}
}

func (f *FakePD) metaJSON(s policy.Store, number int) map[string]any {
	meta := map[string]any{"id": s.ID, "address": s.Address, "version": s.Version, "state_name": stateName(s)}
	if number != 0 {
		meta["state"] = number
	}
	if s.StatusAddress != "" {
		meta["status_address"] = s.StatusAddress
	}
	if !s.LastHeartbeat.IsZero() {
		meta["last_heartbeat"] = s.LastHeartbeat.UnixNano()
	}
	if !s.StartedAt.IsZero() {
		meta["start_timestamp"] = s.StartedAt.Unix()
	}
	if len(s.Labels) > 0 {
		meta["labels"] = labelsJSON(s.Labels)
	}
	return meta
}

func labelsJSON(labels map[string]string) any {
	var out []any
	for k, v := range labels {
		out = append(out, map[string]string{"key": k, "value": v})
	}
	return out
}

func stateNumber(s policy.StoreState) int {
	return slices.Index([]policy.StoreState{policy.StoreUp, policy.StoreOffline, policy.StoreTombstone}, s)
}

// stateName: Disconnected replaces nothing but Up.
func stateName(s policy.Store) string {
	switch {
	case s.State == policy.StoreOffline:
		return "Offline"
	case s.State == policy.StoreTombstone:
		return "Tombstone"
	case s.Silent:
		return "Disconnected"
	}
	return "Up"
}

// safePointsJSON lists expired services too, as older PD does.
func (f *FakePD) safePointsJSON() any {
	var services []policy.ServiceSafePoint // null when empty
	for _, id := range slices.Sorted(maps.Keys(f.services)) {
		services = append(services, f.services[id])
	}
	return map[string]any{"service_gc_safe_points": services, "gc_safe_point": f.gc}
}
