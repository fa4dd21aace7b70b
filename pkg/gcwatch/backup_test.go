package gcwatch_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/pkg/gcwatch"
	"github.com/brctl/brctl/pkg/policy"
)

func TestABackupIsSafeWhileItsHoldIsOneBelowItsTimestamp(t *testing.T) {
	now := time.Unix(1705997000, 0)
	backupTS := policy.TSFromTime(now.Add(-time.Hour))
	hold := func(ts policy.TS, left int64) []policy.ServiceSafePoint {
		return []policy.ServiceSafePoint{{ServiceID: "br-1", ExpiredAt: now.Unix() + left, SafePoint: ts}}
	}
	const (
		absent  = "service safepoint br-1 is not in PD or has expired"
		reached = "GC safepoint 447215933849600000 (2024-01-23T07:03:20Z) has reached BackupTS 447215933849600000 (2024-01-23T07:03:20Z)"
		tooLate = "service safepoint br-1 is at 447215933849600000, which does not hold BackupTS 447215933849600000"
	)
	cases := map[string]struct {
		gc       policy.TS
		services []policy.ServiceSafePoint
		want     gcwatch.Protection
	}{
		"held":                         {backupTS - 1, hold(backupTS-1, 300), gcwatch.Protection{Held: true, ExpiresIn: 5 * time.Minute}},
		"held even further back":       {0, hold(1, 300), gcwatch.Protection{Held: true, ExpiresIn: 5 * time.Minute}},
		"held for ever":                {0, hold(backupTS-1, math.MaxInt64-now.Unix()), gcwatch.Protection{Held: true, Permanent: true}},
		"the hold has expired":         {0, hold(backupTS-1, -1), gcwatch.Protection{Reason: absent}},
		"the hold is not there":        {0, nil, gcwatch.Protection{Reason: absent}},
		"the hold comes too late":      {0, hold(backupTS, 300), gcwatch.Protection{Reason: tooLate}},
		"GC has reached the timestamp": {backupTS, nil, gcwatch.Protection{Lost: true, Reason: reached}},
		"lost in spite of a hold":      {backupTS, hold(backupTS-1, 300), gcwatch.Protection{Lost: true, Held: true, ExpiresIn: 5 * time.Minute, Reason: reached}},
		"a safepoint later than now":   {policy.TSFromTime(now.Add(time.Hour)), hold(backupTS-1, 300), gcwatch.Protection{Held: true, ExpiresIn: 5 * time.Minute}},
		"a safepoint of MaxUint64":     {policy.NoLimitTS, hold(backupTS-1, 300), gcwatch.Protection{Held: true, ExpiresIn: 5 * time.Minute}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := gcwatch.Analyse(policy.SafePoints{GC: tc.gc, Services: tc.services}, now, []string{"br-1"})
			if diff := cmp.Diff(tc.want, gcwatch.CheckBackup(v, backupTS, "br-1")); diff != "" {
				t.Errorf("protection differs (-want +got):\n%s", diff)
			}
		})
	}
}

// recorder remembers what it was told to remove.
type recorder struct{ removed []string }

func (r *recorder) RemoveServiceSafePoint(_ context.Context, id string) error {
	r.removed = append(r.removed, id)
	return nil
}

func TestOnlyRecordedSafePointsAreReleased(t *testing.T) {
	var pd recorder
	self := []string{"br-ours", "gc_worker"}
	for _, id := range []string{"br-theirs", "ticdc", "gc_worker", ""} {
		if err := gcwatch.Release(t.Context(), &pd, self, id); !errors.Is(err, gcwatch.ErrNotOurs) {
			t.Errorf("%q: got %v, want ErrNotOurs", id, err)
		}
	}
	if err := gcwatch.Release(t.Context(), &pd, self, "br-ours"); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(pd.removed, []string{"br-ours"}) {
		t.Errorf("removed %q", pd.removed)
	}
}
