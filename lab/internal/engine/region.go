package engine

import (
	"bytes"

	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/tidb/pkg/store/mockstore/unistore/tikv"
)

// region is one entry of the region table. Its range never changes: a split makes new entries, so a request that holds
// one keeps consistent bounds.
type region struct {
	meta       *metapb.Region
	start, end []byte // raw keys; an empty end is the end of the key space
	latches    *latches
	diff       int64 // bytes written since; the storage engine counts here, nobody reads it

	// Guarded by Regions.mu.
	leader  *metapb.Peer
	virtual int64 // bytes that this region pretends to hold
}

var _ tikv.RegionCtx = (*region)(nil)

func (r *region) Meta() *metapb.Region           { return r.meta }
func (r *region) Diff() *int64                   { return &r.diff }
func (r *region) RawStart() []byte               { return r.start }
func (r *region) AcquireLatches(hashes []uint64) { r.latches.acquire(hashes) }
func (r *region) ReleaseLatches(hashes []uint64) { r.latches.release(hashes) }

// RawEnd hides the engine's internal keys, which sort behind all data.
func (r *region) RawEnd() []byte {
	if len(r.end) == 0 {
		return tikv.InternalKeyPrefix
	}
	return r.end
}

func (r *region) contains(key []byte) bool {
	return bytes.Compare(key, r.start) >= 0 && (len(r.end) == 0 || bytes.Compare(key, r.end) < 0)
}

// overlap is the part of [start, end) that lies in the region.
func (r *region) overlap(start, end []byte) (from, to []byte, ok bool) {
	from, to = start, end
	if bytes.Compare(from, r.start) < 0 {
		from = r.start
	}
	if len(to) == 0 || len(r.end) > 0 && bytes.Compare(r.end, to) < 0 {
		to = r.end
	}
	return from, to, len(to) == 0 || bytes.Compare(from, to) < 0
}
