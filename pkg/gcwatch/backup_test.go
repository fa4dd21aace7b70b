package gcwatch_test

import (
	"encoding/json"
	"math"
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
		return []policy.ServiceSafePoint{
			{ServiceID: "gc_worker", ExpiredAt: math.MaxInt64, SafePoint: 1},
			{ServiceID: "br-1", ExpiredAt: now.Unix() + left, SafePoint: ts},
		}
	}
	const (
		absent  = "service safepoint br-1 is not in PD or has expired"
		reached = "GC safepoint 447215933849600000 (2024-01-23T07:03:20Z) has reached BackupTS 447215933849600000 (2024-01-23T07:03:20Z)"
		tooLate = "service safepoint br-1 is at 447215933849600000, which does not hold BackupTS 447215933849600000"
	)
	lost := gcwatch.Protection{Lost: true, Reason: reached}
	cases := map[string]struct {
		gc       policy.TS
		services []policy.ServiceSafePoint
		want     gcwatch.Protection
	}{
		"held":                         {backupTS - 1, hold(backupTS-1, 300), gcwatch.Protection{}},
		"held even further back":       {0, hold(1, 300), gcwatch.Protection{}},
		"held to this very second":     {0, hold(backupTS-1, 0), gcwatch.Protection{}},
		"held for ever":                {0, hold(backupTS-1, math.MaxInt64-now.Unix()), gcwatch.Protection{}},
		"the hold has expired":         {0, hold(backupTS-1, -1), gcwatch.Protection{Unheld: absent}},
		"the hold is not there":        {0, nil, gcwatch.Protection{Unheld: absent}},
		"the hold comes too late":      {0, hold(backupTS, 300), gcwatch.Protection{Unheld: tooLate}},
		"GC has reached the timestamp": {backupTS, nil, gcwatch.Protection{Lost: true, Reason: reached, Unheld: absent}},
		"lost in spite of a hold":      {backupTS, hold(backupTS-1, 300), lost},
		"a safepoint of this moment":   {policy.TSFromTime(now), hold(1, 300), gcwatch.Protection{Lost: true, Reason: "GC safepoint 447216877568000000 (2024-01-23T08:03:20Z) has reached BackupTS 447215933849600000 (2024-01-23T07:03:20Z)"}},
		"a safepoint later than now":   {policy.TSFromTime(now.Add(time.Millisecond)), hold(1, 300), gcwatch.Protection{}},
		"a safepoint of nonsense":      {4471942016008192200, hold(1, 300), gcwatch.Protection{}},
		"a safepoint of MaxUint64":     {policy.NoLimitTS, hold(1, 300), gcwatch.Protection{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sp := policy.SafePoints{GC: tc.gc, Services: tc.services}
			if diff := cmp.Diff(tc.want, gcwatch.CheckBackup(sp, now, backupTS, "br-1")); diff != "" {
				t.Errorf("protection differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAHoldOfUnknownNameIsNotMissed(t *testing.T) {
	now := time.Unix(1705997000, 0)
	backupTS := policy.TSFromTime(now)
	if p := gcwatch.CheckBackup(policy.SafePoints{GC: 1}, now, backupTS, ""); p != (gcwatch.Protection{}) {
		t.Errorf("got %+v", p)
	}
	if p := gcwatch.CheckBackup(policy.SafePoints{GC: backupTS}, now, backupTS, ""); !p.Lost {
		t.Errorf("a loss needs no hold to be seen: got %+v", p)
	}
}

func TestWhoBlocksGCBesidesTheBackupIsNamed(t *testing.T) {
	const (
		worker = `{"service_id":"gc_worker","expired_at":9223372036854775807,"safe_point":447216720281600000}` // 10 minutes before now
		ours   = `{"service_id":"br-1","expired_at":1705997300,"safe_point":447215933849600000}`               // an hour
		ticdc  = `{"service_id":"ticdc-default-15674009460217235928","expired_at":1705997223,"safe_point":447214990131200000}`
	)
	now := time.Unix(1705997000, 0)
	cases := map[string]struct{ services, want string }{
		"nobody":                        {`[` + worker + `]`, ""},
		"only the backup":               {`[` + worker + `,` + ours + `]`, ""},
		"a service further back":        {`[` + worker + `,` + ours + `,` + ticdc + `]`, "ticdc-default-15674009460217235928 (safepoint 2h0m0s old, expires in 3m43s)"},
		"one that never expires":        {`[` + worker + `,{"service_id":"a","expired_at":9223372036854775807,"safe_point":447214990131200000}]`, "a (safepoint 2h0m0s old, never expires)"},
		"one at zero":                   {`[` + worker + `,{"service_id":"a","expired_at":1705997001,"safe_point":0}]`, "a (safepoint 0: keeps everything, expires in 1s)"},
		"an expired one, still listed":  {`[` + worker + `,{"service_id":"a","expired_at":1705996999,"safe_point":1}]`, ""},
		"level with gc_worker":          {`[` + worker + `,{"service_id":"a","expired_at":1705997001,"safe_point":447216720281600000}]`, ""},
		"a service without a limit":     {`[` + worker + `,{"service_id":"a","expired_at":1705997001,"safe_point":18446744073709551615}]`, ""},
		"gc_worker is not listed":       {`[{"service_id":"b","expired_at":1705997001,"safe_point":447214990131200001},{"service_id":"a","expired_at":1705997001,"safe_point":447214990131200001}]`, "a (safepoint 2h0m0s old, expires in 1s)"},
		"no services":                   {`null`, ""},
		"another br is in the way too":  {`[` + worker + `,{"service_id":"br-2","expired_at":1705997001,"safe_point":447214990131200000}]`, "br-2 (safepoint 2h0m0s old, expires in 1s)"},
		"a safepoint exact to the last": {`[{"service_id":"gc_worker","expired_at":9223372036854775807,"safe_point":447214990131200001},{"service_id":"a","expired_at":1705997001,"safe_point":447214990131200000}]`, "a (safepoint 2h0m0s old, expires in 1s)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sp := policy.SafePoints{GC: 1}
			if err := json.Unmarshal([]byte(tc.services), &sp.Services); err != nil {
				t.Fatal(err)
			}
			if got := gcwatch.CheckBackup(sp, now, policy.TSFromTime(now), "br-1").Blocker; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
