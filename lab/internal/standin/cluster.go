// Package standin is the lab's stand-in for TiKV: for each store the gRPC services and the status port that PD, TiDB, br
// and a product under test talk to. Rows are real and come from one shared engine; the work of a backup, its threads and
// its CPU are modelled by the plant, in real time, over virtual regions.
package standin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"github.com/pingcap/tidb/pkg/store/mockstore/unistore/pd"
	"github.com/pingcap/tidb/pkg/store/mockstore/unistore/tikv"
	"golang.org/x/sync/errgroup"

	"github.com/brctl/brctl/lab/internal/engine"
	"github.com/brctl/brctl/lab/internal/events"
	"github.com/brctl/brctl/lab/internal/plant"
	"github.com/brctl/brctl/lab/internal/settings"
	"github.com/brctl/brctl/lab/internal/shape"
)

// heartbeatInterval is shorter than TiKV's 10 s, so that PD's picture of a small lab is fresh.
const heartbeatInterval = 3 * time.Second

// Config is what a cluster of stand-ins is made of.
type Config struct {
	Shape   shape.Shape
	Dir     string // each store keeps its settings below
	PD      pd.Client
	Regions *engine.Regions
	Engine  *tikv.Server
	Events  *events.Recorder
}

// Place is where one store listens.
type Place struct {
	Index         int // from 0; names the store's directory
	ID            uint64
	Host          int
	Address       string
	StatusAddress string
}

// Cluster is all stand-ins of a lab.
type Cluster struct {
	cfg      Config
	machines []*machine

	targetFull atomic.Bool
	delays     atomic.Bool
	streamIDs  atomic.Int64

	mu     sync.Mutex
	stores []*Store
}

// New makes the stand-ins of these places; nothing listens yet.
func New(cfg Config, places []Place) (*Cluster, error) {
	c := &Cluster{cfg: cfg}
	for h := range cfg.Shape.Hosts {
		c.machines = append(c.machines, newMachine(shape.HostName(h), float64(cfg.Shape.Cores), cfg.Shape.HostLoad(h)))
	}
	for _, p := range places {
		if _, err := c.add(p); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *Cluster) add(p Place) (*Store, error) {
	dir := filepath.Join(c.cfg.Dir, fmt.Sprintf("tikv-%d", p.Index+1))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make store directory: %w", err)
	}
	sh := c.cfg.Shape
	conf, err := settings.Open(filepath.Join(dir, "tikv.json"), settings.Instance{
		Quota: sh.Quota(), BatchSize: sh.BatchSize, RefreshInterval: sh.RefreshInterval,
		RegionSize: int64(sh.RegionSize), Address: p.Address, StatusAddress: p.StatusAddress,
	})
	if err != nil {
		return nil, fmt.Errorf("open settings of %s: %w", p.Address, err)
	}
	m := c.machines[p.Host]
	s := &Store{cluster: c, place: p, machine: m, settings: conf, page: newPage(sh), condition: Up, configMode: ConfigOK}
	m.do(func(now time.Duration) {
		s.plant = m.plant.AddStore(now, plant.StoreConfig{
			Version:                 sh.TiKVVersion,
			Settings:                plantSettings(conf.Backup()),
			BytesPerThreadPerSecond: sh.MBpsPerThread * float64(shape.MiB),
			Cores:                   sh.Quota(),
		})
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stores = append(c.stores, s)
	return s, nil
}

// Stores lists the stand-ins in the order of their directories.
func (c *Cluster) Stores() []*Store {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*Store(nil), c.stores...)
}

// Store finds a stand-in by its store id.
func (c *Cluster) Store(id uint64) (*Store, error) {
	for _, s := range c.Stores() {
		if s.place.ID == id {
			return s, nil
		}
	}
	return nil, fmt.Errorf("no store %d", id)
}

// Register makes the stores known to PD.
func (c *Cluster) Register(ctx context.Context) error {
	for _, s := range c.Stores() {
		if err := c.register(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) register(ctx context.Context, s *Store) error {
	if err := c.cfg.PD.PutStore(ctx, s.meta()); err != nil {
		return fmt.Errorf("put store %d: %w", s.place.ID, err)
	}
	return c.heartbeat(ctx, s)
}

// Meta describes a store to PD before it is registered, as the first store of a cluster must be.
func (c *Cluster) Meta(index int) *metapb.Store { return c.Stores()[index].meta() }

// Start opens all listeners.
func (c *Cluster) Start() error {
	for _, s := range c.Stores() {
		if err := s.start(); err != nil {
			return err
		}
	}
	return nil
}

// Run lets time pass and sends heartbeats until the context ends, then closes all listeners.
func (c *Cluster) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, m := range c.machines {
		group.Go(func() error { return m.run(ctx) })
	}
	group.Go(func() error { return c.heartbeats(ctx) })
	group.Go(func() error { return c.serveBusiness(ctx) })
	group.Go(func() error { return c.cfg.Regions.Run(ctx, heartbeatInterval) })
	err := group.Wait()
	for _, s := range c.Stores() {
		s.stop()
	}
	return err
}

// heartbeats ignores errors: PD may be away because a test killed it, and the next beat tries again.
func (c *Cluster) heartbeats(ctx context.Context) error {
	ticker := time.NewTicker(heartbeatInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			_ = c.Report(ctx)
		}
	}
}

// Report sends one heartbeat of every store, so that PD's sizes are those of the regions as they are now. It tries all
// stores and returns what went wrong.
func (c *Cluster) Report(ctx context.Context) error {
	var errs []error
	for _, s := range c.Stores() {
		errs = append(errs, c.heartbeat(ctx, s))
	}
	return errors.Join(errs...)
}

// heartbeat reports what PD knows of a store's size: of the virtual size of all replicas the part that it holds.
func (c *Cluster) heartbeat(ctx context.Context, s *Store) error {
	if !s.alive() {
		return nil
	}
	held, regions, total := c.cfg.Regions.Held(s.place.ID)
	used := uint64(float64(c.cfg.Shape.Size) * float64(held) / float64(total))
	capacity := 2 * uint64(c.cfg.Shape.Size) / uint64(c.cfg.Shape.Stores())
	capacity = max(capacity, used)
	stats := &pdpb.StoreStats{
		StoreId: s.place.ID, StartTime: uint32(s.startedAt().Unix()),
		Capacity: capacity, UsedSize: used, Available: capacity - used,
		RegionCount: uint32(regions),
		Interval:    &pdpb.TimeInterval{StartTimestamp: uint64(time.Now().Add(-heartbeatInterval).Unix()), EndTimestamp: uint64(time.Now().Unix())},
	}
	if err := c.cfg.PD.StoreHeartbeat(ctx, stats); err != nil {
		return fmt.Errorf("heartbeat of store %d: %w", s.place.ID, err)
	}
	return nil
}

// BeginDelays lets KV requests take their time from now on. Until then they are not delayed, so that a long delay does
// not draw out TiDB's bootstrap.
func (c *Cluster) BeginDelays() { c.delays.Store(true) }

// SetTargetFull makes every write of a backup file fail as on a full disk.
func (c *Cluster) SetTargetFull(full bool) { c.targetFull.Store(full) }

func plantSettings(b settings.Backup) plant.Settings {
	return plant.Settings{
		NumThreads: b.NumThreads, BatchSize: b.BatchSize, Refresh: b.RefreshInterval,
		AutoTune: b.AutoTune, RemainThreads: b.RemainThreads,
	}
}
