package bed

import (
	"context"
	"testing"

	pd "github.com/tikv/pd/client"
)

// fakePD keeps safepoints as PD does: it answers a request that it ignores with success. All other methods are nil.
type fakePD struct {
	pd.Client
	gc, smallest uint64
}

func (f *fakePD) GetTS(context.Context) (physical, logical int64, err error) { return 1, 7, nil }

func (f *fakePD) UpdateGCSafePoint(_ context.Context, ts uint64) (uint64, error) {
	f.gc = max(f.gc, ts)
	return f.gc, nil
}

func (f *fakePD) UpdateServiceGCSafePoint(context.Context, string, int64, uint64) (uint64, error) {
	return f.smallest, nil
}

// fakeNow is the time of fakePD: 1 ms and the 7th timestamp in it.
const fakeNow = 1<<18 + 7

func TestTheGCSafePointMovesForwardOnly(t *testing.T) {
	b := &Bed{pd: &fakePD{gc: 100}}
	if got, err := b.MoveGCSafePoint(t.Context(), 0); err != nil || got != fakeNow {
		t.Errorf("now: got %d, %v, want %d", got, err, fakeNow)
	}
	if got, err := b.MoveGCSafePoint(t.Context(), 200); err == nil {
		t.Errorf("back: got %d, want an error", got)
	}
}

func TestAServiceSafePointThatPDIgnoresIsAnError(t *testing.T) {
	b := &Bed{pd: &fakePD{smallest: 100}}
	for _, tc := range []struct {
		ttl int64
		ts  uint64
		ok  bool
	}{
		{3600, 0, true}, {3600, 100, true}, {3600, 99, false},
		{0, 99, true}, // a removal
	} {
		got, err := b.SetServiceSafePoint(t.Context(), "cdc", tc.ttl, tc.ts)
		if (err == nil) != tc.ok || tc.ok && got != 100 {
			t.Errorf("%+v: got %d, %v", tc, got, err)
		}
	}
}
