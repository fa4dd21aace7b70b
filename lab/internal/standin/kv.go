package standin

import (
	"context"
	"strings"
	"time"

	"github.com/pingcap/kvproto/pkg/tikvpb"
	"github.com/pingcap/tidb/pkg/store/mockstore/unistore/tikv"
	"google.golang.org/grpc"
)

// kvService is the shared engine behind one store's port, slowed down by what goes on at that store's host.
type kvService struct {
	*tikv.Server
	store *Store
}

// BatchCommands is how TiDB sends nearly all of its requests.
func (k *kvService) BatchCommands(stream tikvpb.Tikv_BatchCommandsServer) error {
	slow := &delayedStream{Tikv_BatchCommandsServer: stream, store: k.store, arrivals: make(chan arrival, 1024)}
	go slow.read()
	return k.Server.BatchCommands(slow)
}

// delayUnary slows the requests that come one by one; backups and diagnostics go at their own pace.
func (s *Store) delayUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if strings.HasPrefix(info.FullMethod, "/tikvpb.Tikv/") {
		time.Sleep(s.kvLatency())
	}
	return handle(ctx, req)
}

// kvLatency is how long a KV request takes now: the configured delay times the contention law of the plant.
func (s *Store) kvLatency() time.Duration {
	if !s.cluster.delays.Load() {
		return 0
	}
	s.machine.mu.Lock()
	defer s.machine.mu.Unlock()
	return s.machine.plant.BusinessLatency(s.cluster.cfg.Shape.KVDelay)
}

// delayedStream hands each batch on a fixed time after it arrived. Batches wait side by side, so the delay is latency
// and not a limit on throughput.
type delayedStream struct {
	tikvpb.Tikv_BatchCommandsServer
	store    *Store
	arrivals chan arrival
}

type arrival struct {
	req *tikvpb.BatchCommandsRequest
	err error
	due time.Time
}

func (d *delayedStream) read() {
	for {
		req, err := d.Tikv_BatchCommandsServer.Recv()
		latency := d.store.kvLatency()
		d.store.observeCommands(req, latency)
		a := arrival{req: req, err: err, due: time.Now().Add(latency)}
		select {
		case d.arrivals <- a:
		case <-d.Context().Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// Recv is called by one goroutine, so a later batch never overtakes an earlier one.
func (d *delayedStream) Recv() (*tikvpb.BatchCommandsRequest, error) {
	select {
	case a := <-d.arrivals:
		time.Sleep(time.Until(a.due))
		return a.req, a.err
	case <-d.Context().Done():
		return nil, d.Context().Err()
	}
}
