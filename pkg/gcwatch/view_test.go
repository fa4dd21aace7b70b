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

// list decodes PD's answer as a client must: without passing through a float.
func list(t *testing.T, services, gc string) policy.SafePoints {
	t.Helper()
	var sp policy.SafePoints
	if err := json.Unmarshal([]byte(services), &sp.Services); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(gc), &sp.GC); err != nil {
		t.Fatal(err)
	}
	return sp
}

const (
	worker = `{"service_id":"gc_worker","expired_at":9223372036854775807,"safe_point":443739841939636224}`
	ticdc  = `{"service_id":"ticdc-default-15674009460217235928","expired_at":1692814223,"safe_point":443738442313498625}`
)

func TestTheBlockerIsNamedUntilItExpires(t *testing.T) {
	sp := list(t, "["+worker+","+ticdc+"]", "443738442313498625")

	v := gcwatch.Analyse(sp, time.Unix(1692814000, 0), nil)
	if v.Blocker == nil {
		t.Fatal("nobody blocks")
	}
	if b := v.Blocker; b.ServiceID != "ticdc-default-15674009460217235928" || b.ExpiresIn != 223*time.Second || b.Owner != gcwatch.OwnerOther {
		t.Errorf("got %+v", b)
	}
	if v.Blocker.Age.Kind != gcwatch.AgeKnown || v.Held != 443738442313498625 {
		t.Errorf("got age %s, held %s", v.Blocker.Age, v.Held)
	}

	v = gcwatch.Analyse(sp, time.Unix(1692814300, 0), nil)
	if v.Blocker != nil {
		t.Errorf("%s blocks after it has expired", v.Blocker.ServiceID)
	}
	if len(v.Services) != 1 || v.Services[0].ServiceID != "gc_worker" || !v.Services[0].Permanent {
		t.Errorf("got %+v, want gc_worker alone, for ever", v.Services)
	}
}

func TestNumbersAtTheEndsOfTheirRangeAreSigns(t *testing.T) {
	now := time.Unix(1705997000, 0)
	known := func(ts policy.TS) gcwatch.Age {
		return gcwatch.Age{Kind: gcwatch.AgeKnown, Behind: now.Sub(ts.Time())}
	}
	cases := map[string]struct {
		services, gc string
		minimum      policy.TS
		age, held    gcwatch.Age
		blocker      string
	}{
		"a safepoint in the year 2510": {
			services: `[{"service_id":"gc_worker","expired_at":9223372036854775807,"safe_point":447194201600819200},
				{"service_id":"ticdc","expired_at":1705997910,"safe_point":447194466670870528}]`,
			gc: "4471942016008192200", age: gcwatch.Age{Kind: gcwatch.AgeFuture}, held: known(447194201600819200),
		},
		"a service without a limit": {
			services: `[{"service_id":"ticdc","expired_at":1705997910,"safe_point":18446744073709551615}]`,
			gc:       "426809947095564288", age: known(426809947095564288), held: gcwatch.Age{Kind: gcwatch.AgeNoLimit},
		},
		"pd's own minimum counts more than its list": {
			services: `[{"service_id":"gc_worker","expired_at":9223372036854775807,"safe_point":447194466670870528}]`,
			gc:       "0", minimum: 447194201600819200,
			age: gcwatch.Age{Kind: gcwatch.AgeNever}, held: known(447194201600819200),
		},
		"no services and no GC yet": {
			services: `null`, gc: "0",
			age: gcwatch.Age{Kind: gcwatch.AgeNever}, held: gcwatch.Age{Kind: gcwatch.AgeNoLimit},
		},
		"a safepoint of MaxUint64": {
			services: `[]`, gc: "18446744073709551615",
			age: gcwatch.Age{Kind: gcwatch.AgeNoLimit}, held: gcwatch.Age{Kind: gcwatch.AgeNoLimit},
		},
		"a blocker where gc_worker is not listed": {
			services: `[{"service_id":"b","expired_at":1705997910,"safe_point":447194201600819201},
				{"service_id":"a","expired_at":1705997910,"safe_point":447194201600819200}]`,
			gc: "447194201600819200", age: known(447194201600819200), held: known(447194201600819200), blocker: "a",
		},
		"level with gc_worker is not in its way": {
			services: `[{"service_id":"a","expired_at":1705997910,"safe_point":447194201600819200},
				{"service_id":"gc_worker","expired_at":9223372036854775807,"safe_point":447194201600819200}]`,
			gc: "447194201600819200", age: known(447194201600819200), held: known(447194201600819200),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sp := list(t, tc.services, tc.gc)
			sp.MinService = tc.minimum
			v := gcwatch.Analyse(sp, now, nil)
			if diff := cmp.Diff(tc.age, v.Age); diff != "" {
				t.Errorf("age differs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.held, v.HeldAge); diff != "" {
				t.Errorf("held age differs (-want +got):\n%s", diff)
			}
			got := ""
			if v.Blocker != nil {
				got = v.Blocker.ServiceID
			}
			if got != tc.blocker {
				t.Errorf("blocker is %q, want %q", got, tc.blocker)
			}
			// A backup that started a minute ago is lost in none of them.
			if p := gcwatch.CheckBackup(v, policy.TSFromTime(now.Add(-time.Minute)), "br-1"); p.Lost {
				t.Errorf("lost: %s", p.Reason)
			}
		})
	}
}

func TestOwnersAreToldApartByRecordNotByLooks(t *testing.T) {
	now := time.Unix(1705997000, 0)
	var sp policy.SafePoints
	want := map[string]gcwatch.Owner{
		"gc_worker": gcwatch.OwnerGCWorker, "br-ours": gcwatch.OwnerSelf, "br-theirs": gcwatch.OwnerBR,
		"native_br": gcwatch.OwnerBR, "ticdc": gcwatch.OwnerOther,
	}
	for id := range want {
		sp.Services = append(sp.Services, policy.ServiceSafePoint{ServiceID: id, ExpiredAt: math.MaxInt64, SafePoint: 1})
	}
	v := gcwatch.Analyse(sp, now, []string{"br-ours"})
	got := map[string]gcwatch.Owner{}
	for _, s := range v.Services {
		got[s.ServiceID] = s.Owner
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("owners differ (-want +got):\n%s", diff)
	}
	if v.Services[0].ServiceID != "br-ours" || v.Services[4].ServiceID != "ticdc" {
		t.Errorf("services at one safepoint are not in the order of their ids: %+v", v.Services)
	}
}

func TestAgesReadWell(t *testing.T) {
	for want, age := range map[string]gcwatch.Age{
		"12m0s": {Kind: gcwatch.AgeKnown, Behind: 12*time.Minute + 400*time.Millisecond}, "never ran": {Kind: gcwatch.AgeNever},
		"no limit": {Kind: gcwatch.AgeNoLimit}, "later than now": {Kind: gcwatch.AgeFuture}, "unknown": {},
	} {
		if got := age.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
