package standin

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/pingcap/kvproto/pkg/tikvpb"

	"github.com/brctl/brctl/lab/internal/metricspage"
	"github.com/brctl/brctl/lab/internal/shape"
)

// requestsPerCore is how many requests a second one core of business load stands for on the metrics page. Only their
// latency matters, so the number is small enough to cost nothing.
const requestsPerCore = 20

func newPage(sh shape.Shape) *metricspage.Store {
	cfg := metricspage.DefaultConfig()
	cfg.Version, cfg.Cores, cfg.FillTo = sh.TiKVVersion, sh.Quota(), int(sh.MetricsSize)
	cfg.ThreadListMin = min(cfg.ThreadListMin, sh.ThreadListInterval)
	cfg.ThreadListMax = sh.ThreadListInterval
	return metricspage.NewStore(cfg, time.Now())
}

func (s *Store) getMetrics(w http.ResponseWriter, _ *http.Request) {
	s.measure()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	s.page.WriteTo(w) //nolint:errcheck // the client went away
}

// measure brings the page up to date with the plant.
func (s *Store) measure() {
	s.machine.mu.Lock()
	s.machine.advance()
	threads := metricspage.BusinessThreads(s.plant.BusinessCPU())
	for _, t := range s.plant.Threads() {
		id := fmt.Sprintf("worker/%d/%d", t.Generation, t.Slot)
		threads = append(threads, metricspage.Thread{ID: id, Name: t.Name, CPU: t.CPU})
	}
	threads = append(threads, metricspage.BackupIOThreads(s.plant.IOCPU())...)
	pool, soft := s.plant.PoolGauge(), s.plant.SoftLimit()
	s.machine.mu.Unlock()
	s.page.SetThreads(time.Now(), threads)
	s.page.SetBackup(pool, soft)
}

// serveBusiness counts the requests of the modelled business on all pages, once a second.
func (c *Cluster) serveBusiness(ctx context.Context) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			for _, s := range c.Stores() {
				s.serveBusiness()
			}
		}
	}
}

func (s *Store) serveBusiness() {
	if !s.alive() || !s.cluster.delays.Load() {
		return
	}
	s.machine.mu.Lock()
	cores := s.machine.plant.Base() * s.machine.plant.Cores() / float64(s.cluster.cfg.Shape.TiKVPerHost)
	s.machine.mu.Unlock()
	n := int(cores * requestsPerCore)
	latency := s.kvLatency()
	s.page.ObserveBusiness("kv_get", n*3/4, latency)
	s.page.ObserveBusiness("coprocessor", n/4, latency)
}

// observeCommands counts the real requests of one batch. Those of TiDB's bootstrap are not counted: they are not
// delayed, and would pull the mean down.
func (s *Store) observeCommands(req *tikvpb.BatchCommandsRequest, latency time.Duration) {
	if !s.cluster.delays.Load() {
		return
	}
	for _, r := range req.GetRequests() {
		if name := commandName(r); name != "" {
			s.page.ObserveGRPC(name, latency)
		}
	}
}

// commandName is TiKV's label for the commands that TiDB sends most, and empty for the rest.
func commandName(r *tikvpb.BatchCommandsRequest_Request) string {
	switch r.GetCmd().(type) {
	case *tikvpb.BatchCommandsRequest_Request_Get:
		return "kv_get"
	case *tikvpb.BatchCommandsRequest_Request_BatchGet:
		return "kv_batch_get"
	case *tikvpb.BatchCommandsRequest_Request_Scan:
		return "kv_scan"
	case *tikvpb.BatchCommandsRequest_Request_Coprocessor:
		return "coprocessor"
	case *tikvpb.BatchCommandsRequest_Request_Prewrite:
		return "kv_prewrite"
	case *tikvpb.BatchCommandsRequest_Request_Commit:
		return "kv_commit"
	case *tikvpb.BatchCommandsRequest_Request_PessimisticLock:
		return "kv_pessimistic_lock"
	default:
		return ""
	}
}
