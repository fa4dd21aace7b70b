package pd_test

import (
	"math"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/pkg/policy"
)

func TestSafePointsAreExactToTheLastBit(t *testing.T) {
	bodies := map[string]struct {
		body string
		want policy.SafePoints
	}{
		"gc_worker never expires": {
			`{"service_gc_safe_points":[{"service_id":"gc_worker","expired_at":9223372036854775807,"safe_point":447194201600819201},
			  {"service_id":"ticdc-default-15674009460217235928","expired_at":1705997910,"safe_point":447194466670870528}],
			 "gc_safe_point":4471942016008192200}`,
			policy.SafePoints{GC: 4471942016008192200, Services: []policy.ServiceSafePoint{
				{ServiceID: "gc_worker", ExpiredAt: math.MaxInt64, SafePoint: 447194201600819201},
				{ServiceID: "ticdc-default-15674009460217235928", ExpiredAt: 1705997910, SafePoint: 447194466670870528},
			}},
		},
		"a service without a limit": {
			`{"service_gc_safe_points":[{"service_id":"ticdc","expired_at":1628240046,"safe_point":18446744073709551615}],"gc_safe_point":426809947095564288}`,
			policy.SafePoints{GC: 426809947095564288, Services: []policy.ServiceSafePoint{
				{ServiceID: "ticdc", ExpiredAt: 1628240046, SafePoint: policy.NoLimitTS},
			}},
		},
		"a newer pd gives the minimum": {
			`{"service_gc_safe_points":[],"min_service_gc_safe_point":447194201600819200,"gc_safe_point":0}`,
			policy.SafePoints{MinService: 447194201600819200, Services: []policy.ServiceSafePoint{}},
		},
		"no services": {`{"service_gc_safe_points":null,"gc_safe_point":0}`, policy.SafePoints{}},
	}
	for name, b := range bodies {
		t.Run(name, func(t *testing.T) {
			fake, c := startOne(t)
			fake.Reply(0, safePointPath, http.StatusOK, b.body)
			got, err := c.SafePoints(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(b.want, got); diff != "" {
				t.Errorf("safepoints differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnAnswerWithoutASafePointIsNotZero(t *testing.T) {
	fake, c := startOne(t)
	fake.Reply(0, safePointPath, http.StatusOK, `{"message":"ok"}`)
	if got, err := c.SafePoints(t.Context()); err == nil {
		t.Errorf("got %+v, want an error", got)
	}
}

func TestAServiceSafePointIsRemovedAloneAndTwiceIsNoError(t *testing.T) {
	fake, c := startOne(t)
	ours := policy.ServiceSafePoint{ServiceID: "br-1", ExpiredAt: math.MaxInt64, SafePoint: 446200000000000000}
	theirs := policy.ServiceSafePoint{ServiceID: "br-2", ExpiredAt: math.MaxInt64, SafePoint: 446100000000000001}
	fake.SetService(ours)
	fake.SetService(theirs)
	for range 2 {
		if err := c.RemoveServiceSafePoint(t.Context(), "br-1"); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]policy.ServiceSafePoint{"br-2": theirs}
	if diff := cmp.Diff(want, fake.Services()); diff != "" {
		t.Errorf("pd has (-want +got):\n%s", diff)
	}
}

func TestTheGCWorkersSafePointIsNeverTouched(t *testing.T) {
	fake, c := startOne(t)
	worker := policy.ServiceSafePoint{ServiceID: "gc_worker", ExpiredAt: math.MaxInt64, SafePoint: 200}
	fake.SetService(worker)
	for _, id := range []string{"gc_worker", ""} {
		if err := c.RemoveServiceSafePoint(t.Context(), id); err == nil {
			t.Errorf("removing %q: want an error", id)
		}
	}
	if got := fake.Services()["gc_worker"]; got != worker {
		t.Errorf("gc_worker is now %+v", got)
	}
}
