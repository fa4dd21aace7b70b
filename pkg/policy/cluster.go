package policy

import (
	"net"
	"slices"
	"strings"
	"time"
)

// Sizes in bytes. The seed's "TB" is TiB: 1024·1024 MB of 1 MiB each, so the
// model's MB is MiB as well.
const (
	MiB uint64 = 1 << 20
	GiB uint64 = 1 << 30
	TiB uint64 = 1 << 40
)

// StoreState is PD's own state of a store. "Disconnected" and "Down" are not
// states but ages of the last heartbeat; see Store.Silent.
type StoreState string

// The store states of PD.
const (
	StoreUp        StoreState = "up"
	StoreOffline   StoreState = "offline" // being scaled in; still leads regions until empty
	StoreTombstone StoreState = "tombstone"
)

// Store is one TiKV or TiFlash store as PD knows it, with what its status port
// and TiDB's hardware table add. Zero means "unknown" for every number that
// comes from there: unknown is a value of its own, never a default.
type Store struct {
	ID            uint64            `json:"id"`
	Address       string            `json:"address"`        // the Instance of SHOW CONFIG and SET CONFIG
	StatusAddress string            `json:"status_address"` // host:port, "" when the store has none
	Host          string            `json:"host"`           // host part of Address
	Version       string            `json:"version"`
	State         StoreState        `json:"state"`
	Silent        bool              `json:"silent"` // no heartbeat for longer than PD's disconnect time
	TiFlash       bool              `json:"tiflash"`
	Labels        map[string]string `json:"labels,omitempty"`
	LastHeartbeat time.Time         `json:"last_heartbeat"`
	StartedAt     time.Time         `json:"started_at"` // zero when unknown; a change means a restart

	CapacityBytes  uint64 `json:"capacity_bytes"`
	AvailableBytes uint64 `json:"available_bytes"`
	UsedBytes      uint64 `json:"used_bytes"` // PD's used_size: all replicas that this store holds
	LeaderCount    int    `json:"leader_count"`
	RegionCount    int    `json:"region_count"`

	// Cores is the instance's own CPU limit (tikv_server_cpu_cores_quota, else
	// cpu-logical-cores of cluster_hardware). With NUMA binding or a CPU quota
	// it is less than the host's cores.
	Cores float64 `json:"cores"`

	// AutoTuneOff says that backup.enable-auto-tune is known to be false; TiKV's
	// default is true.
	AutoTuneOff bool `json:"auto_tune_off,omitempty"`
}

// BackedUp reports whether br will ask s for data: a TiKV that is up, or
// offline and still leading regions.
func (s Store) BackedUp() bool {
	if s.TiFlash {
		return false
	}
	return s.State == StoreUp || s.State == StoreOffline && s.LeaderCount > 0
}

// Host is one machine with the TiKV instances on it.
type Host struct {
	Name  string  `json:"name"`
	Cores float64 `json:"cores"` // 0 when unknown
	// CoresSource says where Cores was read: "configured", "quota",
	// "cluster_hardware".
	CoresSource string  `json:"cores_source,omitempty"`
	BaseLoad    float64 `json:"base_load"`       // share of Cores used without a backup, 0..1
	BaseKnown   bool    `json:"base_load_known"` // false: BaseLoad is an assumption
}

// Cluster is one cluster's topology at one moment: the only description that
// planning, control, admission and reports take.
type Cluster struct {
	ID          uint64  `json:"id"` // PD's cluster id
	Name        string  `json:"name"`
	Version     string  `json:"version"` // cluster version of PD
	Stores      []Store `json:"stores"`
	Hosts       []Host  `json:"hosts"`
	Replicas    int     `json:"replicas"`     // PD's replication.max-replicas
	Tables      int     `json:"tables"`       // 0 when unknown
	RegionBytes uint64  `json:"region_bytes"` // coprocessor.region-split-size, 0 when unknown
	// BatchSize and RefreshInterval are the largest that any TiKV has now
	// (backup.batch-size, backup.auto-tune-refresh-interval); 0 when unknown. They
	// decide how long a cut takes where a plan leaves them alone.
	BatchSize       int           `json:"batch_size,omitempty"`
	RefreshInterval time.Duration `json:"refresh_interval,omitempty"`

	Warnings []string `json:"warnings,omitempty"` // for people: what could not be read, and which stores are silent
}

// BackupStores returns the stores that br will ask for data, by address.
func (c Cluster) BackupStores() []Store {
	var out []Store
	for _, s := range c.Stores {
		if s.BackedUp() {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b Store) int { return compareAddress(a.Address, b.Address) })
	return out
}

// UsedBytes is X of the model: used bytes of all replicas over the stores that
// are backed up.
func (c Cluster) UsedBytes() uint64 {
	var sum uint64
	for _, s := range c.BackupStores() {
		sum += s.UsedBytes
	}
	return sum
}

// HostOf returns the host part of an address, or the address itself when it
// has no port.
func HostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

func compareAddress(a, b string) int {
	if ha, hb := HostOf(a), HostOf(b); ha != hb {
		return strings.Compare(ha, hb)
	}
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
