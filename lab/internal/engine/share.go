package engine

import (
	"bytes"
	"slices"

	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/pingcap/tidb/pkg/kv"
	"github.com/pingcap/tidb/pkg/tablecodec"
)

// smallRegion is what a region without virtual data weighs in a backup: next to nothing, as TiDB's system tables do.
const smallRegion = 64 << 10

// dataSet says which tables hold the virtual data, and how much they hold together.
type dataSet struct {
	tables []int64
	total  int64
}

// SetData spreads the virtual bytes evenly over the record regions of these tables. All other regions are small.
func (rs *Regions) SetData(tables []int64, total int64) {
	rs.mu.Lock()
	rs.data = dataSet{tables: slices.Sorted(slices.Values(tables)), total: total}
	rs.shareLocked()
	rs.mu.Unlock()
	rs.Report()
}

func (rs *Regions) shareLocked() {
	var holders []*region
	for _, r := range rs.sorted {
		r.virtual = smallRegion
		if rs.data.holds(r.start, r.end) {
			holders = append(holders, r)
		}
	}
	for _, r := range holders {
		r.virtual = rs.data.total / int64(len(holders))
	}
}

// holds reports whether [start, end) contains records of one of the tables.
func (d dataSet) holds(start, end []byte) bool {
	return slices.ContainsFunc(d.tables, func(id int64) bool {
		from := tablecodec.GenTableRecordPrefix(id)
		to := kv.Key(from).PrefixNext()
		return (len(end) == 0 || bytes.Compare(from, end) < 0) && bytes.Compare(start, to) < 0
	})
}

// SplitKeys cuts the rows 1…rows of each table into this many regions. The ends of the tables come first, so that each
// table is alone in its region when its rows are spread.
func SplitKeys(tables []int64, rows, parts int) [][]byte {
	var keys [][]byte
	for _, id := range tables {
		keys = append(keys, tablecodec.EncodeTablePrefix(id), tablecodec.EncodeTablePrefix(id+1))
		for i := 1; i < min(parts, rows); i++ {
			keys = append(keys, tablecodec.EncodeRowKeyWithHandle(id, kv.IntHandle(1+i*rows/parts)))
		}
	}
	return keys
}

// Piece is the part of one requested range that lies in one region.
type Piece struct {
	Context    *kvrpcpb.Context // how to read it
	Version    uint64           // the region's version, part of a backup file's name
	Start, End []byte           // raw keys
	Bytes      int64            // virtual size
}

// Pieces cuts ranges into the regions that this store leads now; it is what the store has to answer for.
func (rs *Regions) Pieces(store uint64, ranges []*kvrpcpb.KeyRange) []Piece {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	var pieces []Piece
	for _, rng := range ranges {
		for i := rs.indexLocked(rng.StartKey); i < len(rs.sorted); i++ {
			r := rs.sorted[i]
			from, to, ok := r.overlap(rng.StartKey, rng.EndKey)
			if !ok {
				break
			}
			if r.leader == nil || r.leader.StoreId != store {
				continue
			}
			pieces = append(pieces, rs.pieceLocked(r, from, to))
		}
	}
	return pieces
}

func (rs *Regions) pieceLocked(r *region, from, to []byte) Piece {
	size := int64(smallRegion)
	if rs.data.holds(from, to) {
		size = r.virtual
	}
	epoch := r.meta.RegionEpoch
	return Piece{
		Context: &kvrpcpb.Context{RegionId: r.meta.Id, RegionEpoch: epoch, Peer: r.leader},
		Version: epoch.Version, Start: from, End: to, Bytes: size,
	}
}

// Held is the virtual size of everything a store holds, replicas included, its number of regions, and the size that all
// stores hold together.
func (rs *Regions) Held(store uint64) (size int64, regions int, total int64) {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	for _, r := range rs.sorted {
		for _, p := range r.meta.Peers {
			total += r.virtual
			if p.StoreId == store {
				size += r.virtual
				regions++
			}
		}
	}
	return size, regions, total
}
