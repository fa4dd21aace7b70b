package policy

import "fmt"

// OfflineSpec describes a cluster of equal hosts by hand, for planning without
// one.
type OfflineSpec struct {
	Bytes       uint64  // X: used bytes of all replicas, as PD shows them
	Hosts       int     // N
	TiKVPerHost int     // Z
	VCores      float64 // V, of one host; each instance may use all of them
	Replicas    int     // 0: 3
	Tables      int     // 0: unknown
	Version     string  // "" when unknown
}

// OfflineCluster builds the cluster that spec describes: hosts "host1" …, TiKVs
// on ports from 20160, the bytes spread evenly to the byte. It returns an
// *InputError that lists every field that makes no sense.
func OfflineCluster(spec OfflineSpec) (Cluster, error) {
	if err := spec.check(); err != nil {
		return Cluster{}, err
	}
	c := Cluster{Name: "offline", Version: spec.Version, Replicas: spec.Replicas, Tables: spec.Tables}
	if c.Replicas == 0 {
		c.Replicas = defaultReplicas
	}
	instances := uint64(spec.Hosts) * uint64(spec.TiKVPerHost)
	for h := range spec.Hosts {
		host := fmt.Sprintf("host%d", h+1)
		c.Hosts = append(c.Hosts, Host{Name: host, Cores: spec.VCores, CoresSource: "configured"})
		for range spec.TiKVPerHost {
			i := uint64(len(c.Stores))
			s := Store{
				ID: i + 1, Address: fmt.Sprintf("%s:%d", host, firstTiKVPort+i%uint64(spec.TiKVPerHost)), Host: host,
				Version: spec.Version, State: StoreUp, UsedBytes: spec.Bytes / instances, Cores: spec.VCores,
			}
			if i < spec.Bytes%instances {
				s.UsedBytes++
			}
			c.Stores = append(c.Stores, s)
		}
	}
	return c, nil
}

const (
	firstTiKVPort = 20160
	maxOffline    = 10000 // instances; a typo, not a cluster
)

func (s OfflineSpec) check() error {
	var ps problems
	if s.Bytes == 0 {
		ps.add("size", "not given (want such as 10TiB)")
	}
	if s.Hosts < 1 || s.Hosts > maxOffline {
		ps.add("hosts", "outside 1..%d (got %d)", maxOffline, s.Hosts)
	}
	if s.TiKVPerHost < 1 || s.TiKVPerHost > maxOffline || s.Hosts >= 1 && s.TiKVPerHost > maxOffline/s.Hosts {
		ps.add("tikv-per-host", "not a number of instances, or more than %d in all (got %d)", maxOffline, s.TiKVPerHost)
	}
	if !(s.VCores >= 1 && s.VCores <= maxOffline) {
		ps.add("vcores", "outside 1..%d (got %v)", maxOffline, s.VCores)
	}
	if s.Replicas < 0 {
		ps.add("replicas", "below 0 (got %d)", s.Replicas)
	}
	if s.Tables < 0 {
		ps.add("tables", "below 0 (got %d)", s.Tables)
	}
	if len(ps) == 0 {
		return nil
	}
	return &InputError{Problems: ps}
}
