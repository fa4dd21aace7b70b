package standin

import (
	"testing"

	"github.com/brctl/brctl/lab/internal/engine"
)

func TestAPieceIsCompleteWhenItsLastRegionIs(t *testing.T) {
	w := newWork([]engine.Piece{{Bytes: 250}, {Bytes: 100}, {Bytes: 1}}, 100)
	if len(w.sizes) != 5 || w.sizes[2] != 50 || w.sizes[3] != 100 || w.sizes[4] != 1 {
		t.Fatalf("regions %v, want 100 100 50, 100, 1", w.sizes)
	}
	for _, tc := range []struct {
		done []int
		want []int64
	}{
		{[]int{2, 0}, nil},
		{[]int{4}, []int64{1}},
		{[]int{1, 3}, []int64{250, 100}},
	} {
		var got []int64
		for _, p := range w.finish(tc.done) {
			got = append(got, p.Bytes)
		}
		if len(got) != len(tc.want) {
			t.Fatalf("after regions %v: pieces %v, want %v", tc.done, got, tc.want)
		}
		for i := range got {
			if got[i] != tc.want[i] {
				t.Errorf("after regions %v: pieces %v, want %v", tc.done, got, tc.want)
			}
		}
	}
}

func TestWorkWithoutPiecesHasNoRegions(t *testing.T) {
	if w := newWork(nil, 100); len(w.sizes) != 0 {
		t.Errorf("got %d regions", len(w.sizes))
	}
}
