package engine_test

import (
	"bytes"
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"github.com/pingcap/tidb/pkg/tablecodec"

	"github.com/brctl/brctl/lab/internal/engine"
)

// fakePlacer hands out ids and takes reports; it knows nothing of regions.
type fakePlacer struct{ last, reports atomic.Uint64 }

func (p *fakePlacer) AllocID(context.Context) (uint64, error)   { return p.last.Add(1), nil }
func (p *fakePlacer) ReportRegion(*pdpb.RegionHeartbeatRequest) { p.reports.Add(1) }

const (
	tables = 10
	rows   = 200
	total  = int64(60 << 30)
)

func sixStores() []engine.Store {
	var stores []engine.Store
	for id := uint64(1); id <= 6; id++ {
		stores = append(stores, engine.Store{ID: id, Address: string(rune('a' + id))})
	}
	return stores
}

func tableIDs() []int64 {
	ids := make([]int64, tables)
	for i := range ids {
		ids[i] = int64(100 + 2*i)
	}
	return ids
}

// filled is a region table like that of a lab whose tables have been split.
func filled(t *testing.T, file string) *engine.Regions {
	t.Helper()
	rs, err := engine.OpenRegions(t.Context(), file, &fakePlacer{}, sixStores(), 3)
	if err != nil {
		t.Fatal(err)
	}
	// TiDB splits a region off for each table first.
	for _, id := range tableIDs() {
		if _, err := rs.Split(t.Context(), [][]byte{tablecodec.EncodeTablePrefix(id)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := rs.Split(t.Context(), engine.SplitKeys(tableIDs(), rows, 6)); err != nil {
		t.Fatal(err)
	}
	rs.SetData(tableIDs(), total)
	return rs
}

// requests are ranges as br asks for them: the records of every table.
func requests() []*kvrpcpb.KeyRange {
	var ranges []*kvrpcpb.KeyRange
	for _, id := range tableIDs() {
		start := tablecodec.GenTableRecordPrefix(id)
		ranges = append(ranges, &kvrpcpb.KeyRange{StartKey: start, EndKey: start.PrefixNext()})
	}
	return ranges
}

func bytesOf(pieces []engine.Piece) (sum int64) {
	for _, p := range pieces {
		sum += p.Bytes
	}
	return sum
}

func TestEveryStoreAnswersAnEqualShareAndTogetherAll(t *testing.T) {
	rs := filled(t, filepath.Join(t.TempDir(), "regions"))
	var sum int64
	for _, s := range sixStores() {
		got := bytesOf(rs.Pieces(s.ID, requests()))
		if got != total/6 {
			t.Errorf("store %d answers for %d bytes, want %d", s.ID, got, total/6)
		}
		sum += got
	}
	if sum != total {
		t.Errorf("stores answer for %d bytes, want %d", sum, total)
	}
}

func TestPiecesCoverARangeWithoutGapOrOverlap(t *testing.T) {
	rs := filled(t, filepath.Join(t.TempDir(), "regions"))
	want := requests()[3]
	starts := map[string]engine.Piece{}
	for _, s := range sixStores() {
		for _, p := range rs.Pieces(s.ID, requests()[3:4]) {
			starts[string(p.Start)] = p
		}
	}
	at := want.StartKey
	for range starts {
		p, ok := starts[string(at)]
		if !ok {
			t.Fatalf("no piece starts at %x", at)
		}
		at = p.End
	}
	if !bytes.Equal(at, want.EndKey) || len(starts) != 6 {
		t.Errorf("%d pieces end at %x, want 6 that end at %x", len(starts), at, want.EndKey)
	}
}

func TestADownStoresShareIsAnsweredByOthersUntilItIsBack(t *testing.T) {
	rs := filled(t, filepath.Join(t.TempDir(), "regions"))
	rs.SetDown(3, true)
	if got := rs.Pieces(3, requests()); len(got) != 0 {
		t.Errorf("the store that is down answers for %d pieces", len(got))
	}
	var sum int64
	for _, s := range sixStores() {
		sum += bytesOf(rs.Pieces(s.ID, requests()))
	}
	if sum != total {
		t.Errorf("the others answer for %d bytes, want %d", sum, total)
	}
	rs.SetDown(3, false)
	if got := bytesOf(rs.Pieces(3, requests())); got != total/6 {
		t.Errorf("back up it answers for %d bytes, want %d", got, total/6)
	}
}

func TestAReopenedTableIsTheSame(t *testing.T) {
	file := filepath.Join(t.TempDir(), "regions")
	before := filled(t, file)
	after, err := engine.OpenRegions(t.Context(), file, &fakePlacer{}, sixStores(), 3)
	if err != nil {
		t.Fatal(err)
	}
	after.SetData(tableIDs(), total)
	for _, s := range sixStores() {
		a, b := before.Pieces(s.ID, requests()), after.Pieces(s.ID, requests())
		if len(a) != len(b) {
			t.Fatalf("store %d: %d pieces before, %d after", s.ID, len(a), len(b))
		}
		for i := range a {
			if !bytes.Equal(a[i].Start, b[i].Start) || a[i].Context.RegionId != b[i].Context.RegionId || a[i].Bytes != b[i].Bytes {
				t.Errorf("store %d piece %d: %v before, %v after", s.ID, i, a[i], b[i])
			}
		}
	}
}

func TestEvictLeavesNothingOnTheStore(t *testing.T) {
	rs := filled(t, filepath.Join(t.TempDir(), "regions"))
	if err := rs.Evict(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	size, regions, sum := rs.Held(2)
	if size != 0 || regions != 0 {
		t.Errorf("store 2 still holds %d regions with %d bytes", regions, size)
	}
	if small := sum - 3*total; small < 0 || small > total/100 {
		t.Errorf("all stores hold %d bytes, want three copies of %d", sum, total)
	}
}

func TestARequestForAnOldEpochIsToldTheNewRegion(t *testing.T) {
	rs := filled(t, filepath.Join(t.TempDir(), "regions"))
	p := rs.Pieces(1, requests())[0]
	if _, err := rs.GetRegionFromCtx(p.Context); err != nil {
		t.Fatalf("current epoch: %v", err)
	}
	middle := append(append([]byte(nil), p.Start...), 1)
	if _, err := rs.Split(t.Context(), [][]byte{middle}); err != nil {
		t.Fatal(err)
	}
	_, err := rs.GetRegionFromCtx(p.Context)
	if err.GetEpochNotMatch() == nil || len(err.EpochNotMatch.CurrentRegions) != 1 {
		t.Errorf("got %v, want an epoch mismatch that names the region", err)
	}
}
