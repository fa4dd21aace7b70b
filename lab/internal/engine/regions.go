package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/pingcap/kvproto/pkg/errorpb"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"github.com/pingcap/log"
	"github.com/pingcap/tidb/pkg/store/mockstore/unistore/tikv"
	"go.uber.org/zap"
)

// Placer is the part of PD that the region table needs.
type Placer interface {
	AllocID(ctx context.Context) (uint64, error)
	ReportRegion(*pdpb.RegionHeartbeatRequest)
}

// Store is a place where regions can live.
type Store struct {
	ID      uint64
	Address string
}

// Regions is the region table: which key ranges there are, which stores hold them and which store leads each. Unlike
// unistore's own table it knows many stores, and SplitRegion really splits, so every table has regions of its own and
// each of them has a leader that PD, TiDB and br see.
type Regions struct {
	file     string
	replicas int
	placer   Placer
	latches  *latches

	mu     sync.RWMutex
	stores []Store // in the order in which replicas are spread
	down   map[uint64]bool
	byID   map[uint64]*region
	sorted []*region
	data   dataSet
}

var _ tikv.RegionManager = (*Regions)(nil)

// GetRegionFromCtx finds the region a request names and checks its epoch; any store may serve it.
func (rs *Regions) GetRegionFromCtx(ctx *kvrpcpb.Context) (tikv.RegionCtx, *errorpb.Error) {
	rs.mu.RLock()
	r := rs.byID[ctx.GetRegionId()]
	rs.mu.RUnlock()
	if r == nil {
		return nil, &errorpb.Error{
			Message:        "region not found",
			RegionNotFound: &errorpb.RegionNotFound{RegionId: ctx.GetRegionId()},
		}
	}
	have, want := r.meta.GetRegionEpoch(), ctx.GetRegionEpoch()
	if have.GetVersion() != want.GetVersion() || have.GetConfVer() != want.GetConfVer() {
		return nil, &errorpb.Error{
			Message:       "stale epoch",
			EpochNotMatch: &errorpb.EpochNotMatch{CurrentRegions: []*metapb.Region{r.meta}},
		}
	}
	return r, nil
}

// GetStoreInfoFromCtx names the store that a request is meant for.
func (rs *Regions) GetStoreInfoFromCtx(ctx *kvrpcpb.Context) (string, uint64, *errorpb.Error) {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	id := ctx.GetPeer().GetStoreId()
	for _, s := range rs.stores {
		if s.ID == id || id == 0 {
			return s.Address, s.ID, nil
		}
	}
	return "", 0, &errorpb.Error{Message: "store not match", StoreNotMatch: &errorpb.StoreNotMatch{}}
}

// GetStoreIDByAddr finds a store by its address.
func (rs *Regions) GetStoreIDByAddr(addr string) (uint64, error) {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	for _, s := range rs.stores {
		if s.Address == addr {
			return s.ID, nil
		}
	}
	return 0, fmt.Errorf("no store at %s", addr)
}

// GetStoreAddrByStoreID finds a store's address.
func (rs *Regions) GetStoreAddrByStoreID(id uint64) (string, error) {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	for _, s := range rs.stores {
		if s.ID == id {
			return s.Address, nil
		}
	}
	return "", fmt.Errorf("no store %d", id)
}

// SplitRegion answers TiDB's split requests (it asks for one when it creates a table).
func (rs *Regions) SplitRegion(req *kvrpcpb.SplitRegionRequest) *kvrpcpb.SplitRegionResponse {
	keys := req.GetSplitKeys()
	if len(keys) == 0 {
		keys = [][]byte{req.GetSplitKey()}
	}
	made, err := rs.Split(context.Background(), keys)
	if err != nil {
		return &kvrpcpb.SplitRegionResponse{RegionError: &errorpb.Error{Message: err.Error()}}
	}
	return &kvrpcpb.SplitRegionResponse{Regions: made}
}

// Split makes each of the raw keys the start of a region and returns the regions whose range changed.
func (rs *Regions) Split(ctx context.Context, keys [][]byte) ([]*metapb.Region, error) {
	ids, err := rs.allocate(ctx, len(keys)*(1+rs.replicas))
	if err != nil {
		return nil, err
	}
	rs.mu.Lock()
	changed := map[uint64]*region{}
	for _, key := range keys {
		left, right, ok := rs.splitLocked(key, &ids)
		if !ok {
			continue
		}
		changed[left.meta.Id], changed[right.meta.Id] = left, right
	}
	rs.shareLocked()
	reports := rs.reportsLocked(changed)
	err = rs.saveLocked()
	rs.mu.Unlock()
	if err != nil {
		return nil, err
	}
	metas := make([]*metapb.Region, 0, len(reports))
	for _, report := range reports {
		rs.placer.ReportRegion(report)
		metas = append(metas, report.Region)
	}
	return metas, nil
}

// Obey splits as PD asks, which it does where its keyspaces begin and end. PD repeats itself until it is done, so an
// error needs no more than a line in the log.
func (rs *Regions) Obey(ctx context.Context, split *pdpb.SplitRegion) {
	var keys [][]byte
	for _, encoded := range split.GetKeys() {
		if key, err := decodeKey(encoded); err == nil {
			keys = append(keys, key)
		}
	}
	if _, err := rs.Split(ctx, keys); err != nil {
		log.Warn("cannot split a region as PD asked", zap.Error(err))
	}
}

func (rs *Regions) allocate(ctx context.Context, n int) ([]uint64, error) {
	ids := make([]uint64, n)
	for i := range ids {
		id, err := rs.placer.AllocID(ctx)
		if err != nil {
			return nil, fmt.Errorf("allocate region id: %w", err)
		}
		ids[i] = id
	}
	return ids, nil
}

// splitLocked cuts the region that contains key in two. As in TiKV the right part keeps the id.
func (rs *Regions) splitLocked(key []byte, ids *[]uint64) (left, right *region, ok bool) {
	i := rs.indexLocked(key)
	old := rs.sorted[i]
	if bytes.Equal(old.start, key) || len(key) == 0 {
		return nil, nil, false
	}
	take := func() uint64 {
		id := (*ids)[0]
		*ids = (*ids)[1:]
		return id
	}
	epoch := &metapb.RegionEpoch{ConfVer: old.meta.RegionEpoch.ConfVer, Version: old.meta.RegionEpoch.Version + 1}
	right = rs.newRegion(old.meta.Id, epoch, key, old.end, old.meta.Peers)
	right.leader = old.leader
	peers := rs.spreadLocked(key, old.start, take)
	left = rs.newRegion(take(), epoch, old.start, key, peers)
	rs.electLocked(left)
	rs.byID[right.meta.Id], rs.byID[left.meta.Id] = right, left
	rs.sorted = slices.Replace(rs.sorted, i, i+1, left, right)
	return left, right, true
}

func (rs *Regions) newRegion(id uint64, epoch *metapb.RegionEpoch, start, end []byte, peers []*metapb.Peer) *region {
	return &region{
		meta: &metapb.Region{
			Id: id, StartKey: encodeKey(start), EndKey: encodeKey(end), RegionEpoch: epoch, Peers: peers,
		},
		start: start, end: end, latches: rs.latches,
	}
}

// indexLocked is the position of the region that contains key; the table has no gaps.
func (rs *Regions) indexLocked(key []byte) int {
	return sort.Search(len(rs.sorted), func(i int) bool {
		end := rs.sorted[i].end
		return len(end) == 0 || bytes.Compare(key, end) < 0
	})
}

func (rs *Regions) reportsLocked(regions map[uint64]*region) []*pdpb.RegionHeartbeatRequest {
	reports := make([]*pdpb.RegionHeartbeatRequest, 0, len(regions))
	for _, r := range regions {
		if r.leader == nil {
			continue
		}
		reports = append(reports, &pdpb.RegionHeartbeatRequest{
			Region: r.meta, Leader: r.leader, Term: 5,
			ApproximateSize: uint64(max(r.virtual, 1<<20)),
			ApproximateKeys: uint64(max(r.virtual/1024, 1)),
		})
	}
	return reports
}

// Report tells PD about every region. PD forgets leaders and sizes when it restarts, and real stores repeat themselves
// as well.
func (rs *Regions) Report() {
	rs.mu.RLock()
	reports := rs.reportsLocked(rs.byID)
	rs.mu.RUnlock()
	for _, report := range reports {
		rs.placer.ReportRegion(report)
	}
}

// Run repeats Report until the context ends.
func (rs *Regions) Run(ctx context.Context, interval time.Duration) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			rs.Report()
		}
	}
}

// Close has nothing to stop; the storage engine calls it.
func (rs *Regions) Close() error { return nil }

var errNoStore = errors.New("no store to place a region on")
