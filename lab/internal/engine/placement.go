package engine

import (
	"bytes"
	"context"
	"slices"

	"github.com/pingcap/kvproto/pkg/metapb"
)

// tablePrefixLen is the length of "t" and the table's id, which every key of a table begins with.
const tablePrefixLen = 9

func tableOf(key []byte) []byte { return key[:min(len(key), tablePrefixLen)] }

// spreadLocked picks the stores of a new region that is cut off in front of key: the store with the fewest preferred
// regions of the same table (then of all) comes first and is preferred as leader; the replicas take the stores behind
// it, which are on other hosts. So every store leads an equal share of every table.
func (rs *Regions) spreadLocked(key, start []byte, takeID func() uint64) []*metapb.Peer {
	table := tableOf(start)
	if len(start) == 0 {
		table = tableOf(key)
	}
	sameTable, all := map[uint64]int{}, map[uint64]int{}
	for _, r := range rs.sorted {
		preferred := r.meta.Peers[0].StoreId
		all[preferred]++
		if bytes.Equal(tableOf(r.start), table) {
			sameTable[preferred]++
		}
	}
	best := 0
	for i, s := range rs.stores {
		b := rs.stores[best].ID
		if sameTable[s.ID] < sameTable[b] || sameTable[s.ID] == sameTable[b] && all[s.ID] < all[b] {
			best = i
		}
	}
	n := min(rs.replicas, len(rs.stores))
	peers := make([]*metapb.Peer, 0, n)
	for i := range n {
		store := rs.stores[(best+i)%len(rs.stores)]
		peers = append(peers, &metapb.Peer{Id: takeID(), StoreId: store.ID})
	}
	return peers
}

// electLocked gives a region its leader: the preferred peer, or while its store is down the live peer whose store leads
// least. Without a live peer the region has no leader, and nobody answers for it.
func (rs *Regions) electLocked(r *region) {
	r.leader = nil
	led := map[uint64]int{}
	for _, other := range rs.sorted {
		if other.leader != nil {
			led[other.leader.StoreId]++
		}
	}
	for i, p := range r.meta.Peers {
		if rs.down[p.StoreId] {
			continue
		}
		if i == 0 {
			r.leader = p
			return
		}
		if r.leader == nil || led[p.StoreId] < led[r.leader.StoreId] {
			r.leader = p
		}
	}
}

// SetDown moves the leaders of a store away, or back to it, and tells PD.
func (rs *Regions) SetDown(store uint64, down bool) {
	rs.mu.Lock()
	rs.down[store] = down
	for _, r := range rs.sorted {
		if r.meta.Peers[0].StoreId == store || r.leader == nil || r.leader.StoreId == store {
			rs.electLocked(r)
		}
	}
	rs.mu.Unlock()
	rs.Report()
}

// AddStore makes a store known; it leads nothing until a region is split off to it.
func (rs *Regions) AddStore(s Store) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.stores = append(rs.stores, s)
}

// Evict moves all of a store's peers to other stores, one to each in turn, and forgets the store.
func (rs *Regions) Evict(ctx context.Context, store uint64) error {
	_, held, _ := rs.Held(store)
	ids, err := rs.allocate(ctx, held)
	if err != nil {
		return err
	}
	rs.mu.Lock()
	rs.stores = slices.DeleteFunc(rs.stores, func(s Store) bool { return s.ID == store })
	for _, r := range rs.sorted {
		if ids, err = rs.replaceLocked(r, store, ids); err != nil {
			break
		}
	}
	if err == nil {
		err = rs.saveLocked()
	}
	rs.mu.Unlock()
	rs.Report()
	return err
}

// replaceLocked puts a peer on a store that has none yet in place of the one to go. The region's meta is replaced, not
// changed: requests under way still look at the old one.
func (rs *Regions) replaceLocked(r *region, gone uint64, ids []uint64) ([]uint64, error) {
	at := slices.IndexFunc(r.meta.Peers, func(p *metapb.Peer) bool { return p.StoreId == gone })
	if at < 0 {
		return ids, nil
	}
	for i := range rs.stores {
		next := rs.stores[(int(r.meta.Id)+i)%len(rs.stores)].ID
		if slices.ContainsFunc(r.meta.Peers, func(p *metapb.Peer) bool { return p.StoreId == next }) {
			continue
		}
		peers := slices.Clone(r.meta.Peers)
		peers[at] = &metapb.Peer{Id: ids[0], StoreId: next}
		epoch := &metapb.RegionEpoch{ConfVer: r.meta.RegionEpoch.ConfVer + 2, Version: r.meta.RegionEpoch.Version}
		moved := rs.newRegion(r.meta.Id, epoch, r.start, r.end, peers)
		moved.virtual = r.virtual
		rs.byID[r.meta.Id], rs.sorted[rs.indexLocked(r.start)] = moved, moved
		rs.electLocked(moved)
		return ids[1:], nil
	}
	return ids, errNoStore
}
