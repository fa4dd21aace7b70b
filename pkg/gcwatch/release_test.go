package gcwatch_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/brctl/brctl/pkg/gcwatch"
)

// recorder remembers what it was told to remove.
type recorder struct{ removed []string }

func (r *recorder) RemoveServiceSafePoint(_ context.Context, id string) error {
	r.removed = append(r.removed, id)
	return nil
}

func TestOnlyTheHoldOfASingleBRIsReleased(t *testing.T) {
	var pd recorder
	const ours = "br-1f0e3c9a-86f5-4c9b-9d5e-0a7b8c9d0e1f"
	for _, id := range []string{
		"", "gc_worker", "native_br", "ticdc-default-15674009460217235928", "log-backup-coordinator", "br-", "br-ours",
		strings.TrimPrefix(ours, "br-"), ours + "0", " " + ours, ours + "\n", ours + "\ngc_worker", strings.ToUpper(ours),
	} {
		if err := gcwatch.Release(t.Context(), &pd, id); err == nil {
			t.Errorf("%q was released", id)
		}
	}
	if err := gcwatch.Release(t.Context(), &pd, ours); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(pd.removed, []string{ours}) {
		t.Errorf("removed %q", pd.removed)
	}
}
