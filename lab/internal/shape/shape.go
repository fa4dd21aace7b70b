// Package shape holds what a lab looks like: the flags of `lab up`, their defaults, their rules, and the layout of
// stores over hosts that follows from them. It does no I/O.
package shape

import (
	"errors"
	"fmt"
	"time"
)

// Shape is the size of the cluster that the lab pretends to be.
type Shape struct {
	Hosts           int           `json:"hosts"`
	TiKVPerHost     int           `json:"tikv_per_host"`
	Cores           int           `json:"cores"`
	Bound           bool          `json:"bound"`
	Size            Bytes         `json:"size"`
	Replicas        int           `json:"replicas"`
	RegionSize      Bytes         `json:"region_size"`
	Tables          int           `json:"tables"`
	Rows            int           `json:"rows"`
	MBpsPerThread   float64       `json:"mbps_per_thread"`
	RefreshInterval time.Duration `json:"refresh_interval"`
	BatchSize       int           `json:"batch_size"`
	Load            []float64     `json:"load"`
	PD              int           `json:"pd"`
	TiKVVersion     string        `json:"tikv_version"`
	S3              bool          `json:"s3"`
	MetricsSize     Bytes         `json:"metrics_size"`
	// ThreadListInterval is how long a new thread can stay off the metrics page; TiKV takes 15 s to 10 min.
	ThreadListInterval time.Duration `json:"thread_list_interval"`
	KVDelay            time.Duration `json:"kv_delay"`
}

// Default is the lab without any flag.
func Default() Shape {
	return Shape{
		Hosts: 3, TiKVPerHost: 1, Cores: 16,
		Size: 300 * 1024 * MiB, Replicas: 3, RegionSize: 96 * MiB,
		Tables: 40, Rows: 200,
		MBpsPerThread: 360, RefreshInterval: 2 * time.Second, BatchSize: 8,
		Load: []float64{0.25}, PD: 1, TiKVVersion: "8.5.0",
		MetricsSize: 64 << 10, ThreadListInterval: 2 * time.Second, KVDelay: 500 * time.Microsecond,
	}
}

// Validate reports every problem at once.
func (s Shape) Validate() error {
	var errs []error
	positive := func(name string, ok bool, got any) {
		if !ok {
			errs = append(errs, fmt.Errorf("--%s: got %v, want more than zero", name, got))
		}
	}
	positive("hosts", s.Hosts > 0, s.Hosts)
	positive("tikv-per-host", s.TiKVPerHost > 0, s.TiKVPerHost)
	positive("cores", s.Cores > 0, s.Cores)
	positive("size", s.Size > 0, s.Size)
	positive("replicas", s.Replicas > 0, s.Replicas)
	positive("region-size", s.RegionSize > 0, s.RegionSize)
	positive("tables", s.Tables > 0, s.Tables)
	positive("rows", s.Rows > 0, s.Rows)
	positive("mbps-per-thread", s.MBpsPerThread > 0, s.MBpsPerThread)
	positive("refresh-interval", s.RefreshInterval > 0, s.RefreshInterval)
	positive("thread-list-interval", s.ThreadListInterval > 0, s.ThreadListInterval)
	positive("batch-size", s.BatchSize > 0, s.BatchSize)
	positive("pd", s.PD > 0, s.PD)
	if s.Hosts > 250 {
		errs = append(errs, fmt.Errorf("--hosts: got %d, want at most 250 loopback addresses", s.Hosts))
	}
	if s.Stores() > 0 && s.Replicas > s.Stores() {
		errs = append(errs, fmt.Errorf("--replicas: got %d, want at most %d: %d hosts with %d TiKV each, and a store holds one replica of a region",
			s.Replicas, s.Stores(), s.Hosts, s.TiKVPerHost))
	}
	if len(s.Load) != 1 && len(s.Load) != s.Hosts {
		errs = append(errs, fmt.Errorf("--load: got %d values, want one or one per host (%d)", len(s.Load), s.Hosts))
	}
	for _, l := range s.Load {
		if err := CheckLoad(l); err != nil {
			errs = append(errs, fmt.Errorf("--load: %w", err))
		}
	}
	return errors.Join(errs...)
}

// CheckLoad refuses a business load that no host can have. Above 1 more is asked for than the host has.
func CheckLoad(l float64) error {
	if l >= 0 && l <= 2 {
		return nil
	}
	return fmt.Errorf("got %g, want a share of the host's CPU between 0 and 2", l)
}

// Stores is the number of TiKV stand-ins.
func (s Shape) Stores() int { return s.Hosts * s.TiKVPerHost }

// Host names the loopback host of the store with this index. Consecutive stores sit on different hosts, so that the
// replicas of a region, which take consecutive stores, do as well.
func (s Shape) Host(store int) string { return HostName(store % s.Hosts) }

// HostName is the loopback address of the host with this index, the first being 127.0.0.1.
func HostName(host int) string { return fmt.Sprintf("127.0.0.%d", host+1) }

// HostLoad is the business load of the host with this index, as a share of its CPU.
func (s Shape) HostLoad(host int) float64 {
	if len(s.Load) == 1 {
		return s.Load[0]
	}
	return s.Load[host]
}

// Quota is the number of cores that one TiKV believes it has: the whole host's, unless instances are bound to a part
// of it (NUMA binding or a CPU quota, usual with several per host).
func (s Shape) Quota() float64 {
	if s.Bound {
		return float64(s.Cores) / float64(s.TiKVPerHost)
	}
	return float64(s.Cores)
}

// LeaderBytes is the amount that one backup reads: every byte once, not once per replica.
func (s Shape) LeaderBytes() Bytes { return s.Size / Bytes(s.Replicas) }
