package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/tidb/pkg/util/codec"
)

// OpenRegions reads the region table of a lab, or begins one whose single region lies on the first store. The caller
// bootstraps PD with Root and puts the stores before it reports regions.
func OpenRegions(ctx context.Context, file string, placer Placer, stores []Store, replicas int) (*Regions, error) {
	if len(stores) == 0 {
		return nil, errNoStore
	}
	rs := &Regions{
		file: file, replicas: replicas, placer: placer, latches: newLatches(),
		stores: stores, down: map[uint64]bool{}, byID: map[uint64]*region{},
	}
	data, err := os.ReadFile(file)
	switch {
	case err == nil:
		return rs, rs.load(data)
	case errors.Is(err, fs.ErrNotExist):
		return rs, rs.begin(ctx)
	default:
		return nil, fmt.Errorf("read region table: %w", err)
	}
}

// begin makes the first region. Its peers have a newer configuration version than the one that PD is bootstrapped
// with, so that PD takes them from the first report.
func (rs *Regions) begin(ctx context.Context) error {
	n := min(rs.replicas, len(rs.stores))
	ids, err := rs.allocate(ctx, 1+n)
	if err != nil {
		return err
	}
	peers := make([]*metapb.Peer, 0, n)
	for i := range n {
		peers = append(peers, &metapb.Peer{Id: ids[1+i], StoreId: rs.stores[i].ID})
	}
	root := rs.newRegion(ids[0], &metapb.RegionEpoch{ConfVer: uint64(n), Version: 1}, nil, nil, peers)
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.add(root)
	return rs.saveLocked()
}

func (rs *Regions) add(r *region) {
	rs.byID[r.meta.Id] = r
	rs.sorted = append(rs.sorted, r)
	rs.electLocked(r)
}

// Root is the form of the last region that PD accepts as the first of a cluster: the whole key space on one store.
func (rs *Regions) Root() *metapb.Region {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	last := rs.sorted[len(rs.sorted)-1].meta
	return &metapb.Region{
		Id: last.Id, RegionEpoch: &metapb.RegionEpoch{ConfVer: 1, Version: 1},
		Peers: []*metapb.Peer{{Id: last.Peers[0].Id, StoreId: rs.stores[0].ID}},
	}
}

// load fills the table from the messages of the file, which are in key order.
func (rs *Regions) load(data []byte) error {
	for len(data) > 0 {
		rest, raw, err := codec.DecodeCompactBytes(data)
		if err != nil {
			return fmt.Errorf("parse region table: %w", err)
		}
		data = rest
		meta := &metapb.Region{}
		if err := meta.Unmarshal(raw); err != nil {
			return fmt.Errorf("parse region table: %w", err)
		}
		start, err := decodeKey(meta.StartKey)
		if err != nil {
			return fmt.Errorf("parse region %d: %w", meta.Id, err)
		}
		end, err := decodeKey(meta.EndKey)
		if err != nil {
			return fmt.Errorf("parse region %d: %w", meta.Id, err)
		}
		rs.add(rs.newRegion(meta.Id, meta.RegionEpoch, start, end, meta.Peers))
	}
	return nil
}

// saveLocked writes the table before PD hears of a change, so that after a crash it is never behind PD.
func (rs *Regions) saveLocked() error {
	var data []byte
	for _, r := range rs.sorted {
		raw, err := r.meta.Marshal()
		if err != nil {
			return fmt.Errorf("encode region %d: %w", r.meta.Id, err)
		}
		data = codec.EncodeCompactBytes(data, raw)
	}
	tmp := rs.file + ".tmp"
	if err := os.WriteFile(tmp, data, 0o644); err != nil {
		return fmt.Errorf("write region table: %w", err)
	}
	if err := os.Rename(tmp, rs.file); err != nil {
		return fmt.Errorf("write region table: %w", err)
	}
	return nil
}

func decodeKey(encoded []byte) ([]byte, error) {
	if len(encoded) == 0 {
		return nil, nil
	}
	_, raw, err := codec.DecodeBytes(encoded, nil)
	return raw, err
}
