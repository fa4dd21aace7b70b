package standin

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	backup "github.com/pingcap/kvproto/pkg/brpb"
	"github.com/pingcap/kvproto/pkg/diagnosticspb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/tikvpb"
	"google.golang.org/grpc"

	"github.com/brctl/brctl/lab/internal/events"
	"github.com/brctl/brctl/lab/internal/metricspage"
	"github.com/brctl/brctl/lab/internal/plant"
	"github.com/brctl/brctl/lab/internal/settings"
)

// Condition is the health of a stand-in.
type Condition string

// Conditions.
const (
	Up       Condition = "up"
	Down     Condition = "down"      // the process is gone: no ports, no heartbeats, its leaders move
	Hung     Condition = "hung"      // ports accept and heartbeats go on, but backups and the status port never answer
	Slow     Condition = "slow"      // its backup threads run at a tenth of their speed
	NoStatus Condition = "no-status" // runs without a status port and does not tell PD of one
)

// ConfigMode is how a stand-in answers changes of its settings.
type ConfigMode string

// Config modes.
const (
	ConfigOK           ConfigMode = "ok"
	ConfigRefuse       ConfigMode = "refuse"        // an error, nothing changes
	ConfigNotPersisted ConfigMode = "not-persisted" // an error, but the value is in force
	ConfigHang         ConfigMode = "hang"          // no answer until the mode changes; then the request is served
)

const slowPace = 0.1

// Store is one TiKV stand-in.
type Store struct {
	cluster  *Cluster
	place    Place
	machine  *machine
	plant    *plant.Store
	settings *settings.Settings
	page     *metricspage.Store

	mu         sync.Mutex
	condition  Condition
	configMode ConfigMode
	changed    chan struct{} // closed when condition or configMode changes; who hangs looks again
	started    time.Time
	rpc        *grpc.Server
	status     *http.Server
	streams    int // open backup streams
}

// Place says where the store is.
func (s *Store) Place() Place { return s.place }

// Settings are the store's settings.
func (s *Store) Settings() *settings.Settings { return s.settings }

func (s *Store) meta() *metapb.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &metapb.Store{
		Id: s.place.ID, Address: s.place.Address, StatusAddress: s.place.StatusAddress,
		Version: s.cluster.cfg.Shape.TiKVVersion, GitHash: "stand-in", StartTimestamp: s.started.Unix(),
		Labels:        []*metapb.StoreLabel{{Key: "host", Value: s.machine.name}},
		LastHeartbeat: time.Now().UnixNano(),
	}
	if s.condition == NoStatus {
		m.StatusAddress = ""
	}
	return m
}

func (s *Store) alive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.condition != Down
}

func (s *Store) startedAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
}

// start opens the ports, as a process that starts does.
func (s *Store) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = time.Now()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	l, err := net.Listen("tcp", s.place.Address)
	if err != nil {
		return fmt.Errorf("listen for store %d: %w", s.place.ID, err)
	}
	s.rpc = grpc.NewServer(grpc.UnaryInterceptor(s.delayUnary), grpc.MaxRecvMsgSize(64<<20))
	tikvpb.RegisterTikvServer(s.rpc, &kvService{Server: s.cluster.cfg.Engine, store: s})
	backup.RegisterBackupServer(s.rpc, &backupService{store: s})
	diagnosticspb.RegisterDiagnosticsServer(s.rpc, &diagnosticsService{store: s})
	go s.rpc.Serve(l) //nolint:errcheck // it ends when stop closes the listener
	if s.condition == NoStatus {
		return nil
	}
	return s.startStatus()
}

func (s *Store) startStatus() error {
	l, err := net.Listen("tcp", s.place.StatusAddress)
	if err != nil {
		return fmt.Errorf("listen for status of store %d: %w", s.place.ID, err)
	}
	s.status = &http.Server{Handler: s.statusHandler(), ReadHeaderTimeout: 10 * time.Second}
	go s.status.Serve(l) //nolint:errcheck // it ends when stop closes the listener
	return nil
}

// stop closes the ports and with them every stream. It takes the servers out first: their handlers need the lock.
func (s *Store) stop() {
	s.mu.Lock()
	rpc, status := s.rpc, s.status
	s.rpc, s.status = nil, nil
	s.mu.Unlock()
	if rpc != nil {
		rpc.Stop()
	}
	if status != nil {
		status.Close()
	}
}

// wait returns a channel that closes when the condition or the config mode changes.
func (s *Store) wait() (Condition, ConfigMode, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.condition, s.configMode, s.changed
}

func (s *Store) event(kind string) events.Event {
	return events.Event{Kind: kind, StoreID: s.place.ID, Instance: s.place.Address}
}

func (s *Store) record(e events.Event) { s.cluster.cfg.Events.Add(e) }

// SetConfigMode changes how settings are answered from now on.
func (s *Store) SetConfigMode(mode ConfigMode) error {
	switch mode {
	case ConfigOK, ConfigRefuse, ConfigNotPersisted, ConfigHang:
	default:
		return fmt.Errorf("config mode %q: want ok, refuse, not-persisted or hang", mode)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.configMode = mode
	s.notifyLocked()
	return nil
}

func (s *Store) notifyLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}
