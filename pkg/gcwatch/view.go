// Package gcwatch reads PD's GC safepoints the way a person on call would: how
// far GC is behind, who holds it back and until when, and whether a backup's
// data is still there.
//
// The reading (Analyse, CheckBackup) is pure. Watcher polls PD for it and
// tolerates what PD does during an election. The package never changes a
// safepoint, except that Release ends one that is recorded as ours: an entry of
// somebody else is reported, however dead it looks.
//
// What newer PD calls a GC barrier appears in the same list as a service
// safepoint, next to a gc_worker entry that PD makes up from its transaction
// safepoint; both are read the same way.
package gcwatch

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

const (
	gcWorkerID  = "gc_worker" // TiDB's own GC: the point up to which it wants to delete
	brPrefix    = "br-"       // one backup or restore of br, followed by a UUID
	brBarrierID = "native_br" // br on PD with GC barriers
)

// AgeKind says what kind of answer an Age is. PD uses the ends of the number
// range as signs, and its database has been seen to hold nonsense.
type AgeKind string

// The kinds of age.
const (
	AgeKnown   AgeKind = "known"
	AgeNever   AgeKind = "never"    // 0: GC has not run yet, not "fifty years behind"
	AgeNoLimit AgeKind = "no_limit" // MaxUint64: holds nothing back
	AgeFuture  AgeKind = "future"   // later than now: not to be believed, and nothing to act on
)

// Age is how far a safepoint lies behind now.
type Age struct {
	Kind   AgeKind
	Behind time.Duration // valid if Kind is AgeKnown
}

// String is for people: "12m0s", "no limit".
func (a Age) String() string {
	switch a.Kind {
	case AgeKnown:
		return a.Behind.Round(time.Second).String()
	case AgeNever:
		return "never ran"
	case AgeNoLimit:
		return "no limit"
	case AgeFuture:
		return "later than now"
	}
	return "unknown"
}

func ageOf(ts policy.TS, now time.Time) Age {
	switch {
	case ts == 0:
		return Age{Kind: AgeNever}
	case ts == policy.NoLimitTS:
		return Age{Kind: AgeNoLimit}
	case ts.Time().After(now):
		return Age{Kind: AgeFuture}
	}
	return Age{Kind: AgeKnown, Behind: now.Sub(ts.Time())}
}

// Owner says whose a service safepoint is, as far as its id tells.
type Owner string

// The owners.
const (
	OwnerSelf     Owner = "self"      // recorded by one of our runs
	OwnerBR       Owner = "br"        // another br, ours from a lost record included
	OwnerGCWorker Owner = "gc_worker" // TiDB itself
	OwnerOther    Owner = "other"     // TiCDC, log backup, …
)

// Service is one service safepoint that has not expired.
type Service struct {
	policy.ServiceSafePoint
	Owner     Owner
	Age       Age
	ExpiresIn time.Duration // valid unless Permanent
	Permanent bool          // never expires
}

// View is PD's list, read at one moment.
type View struct {
	Now time.Time
	GC  policy.TS // everything up to here may be deleted already
	Age Age       // of GC
	// Services are the unexpired ones, the one that holds back most first.
	Services []Service
	// Blocker is the service that keeps GC behind where TiDB wants it; nil when
	// none does.
	Blocker *Service
	// Held is the oldest safepoint of all services, gc_worker included:
	// NoLimitTS when none limits GC.
	Held    policy.TS
	HeldAge Age
}

// Analyse reads PD's list at now, which should come from PD's own clock. self
// are the service ids recorded by our runs.
func Analyse(sp policy.SafePoints, now time.Time, self []string) View {
	v := View{Now: now, GC: sp.GC, Age: ageOf(sp.GC, now), Held: policy.NoLimitTS}
	wanted := policy.NoLimitTS // where TiDB wants GC
	for _, s := range sp.Services {
		if expired(s, now) {
			continue
		}
		v.Services = append(v.Services, service(s, now, self))
		v.Held = min(v.Held, s.SafePoint)
		if s.ServiceID == gcWorkerID {
			wanted = s.SafePoint
		}
	}
	slices.SortFunc(v.Services, func(a, b Service) int {
		return cmp.Or(cmp.Compare(a.SafePoint, b.SafePoint), cmp.Compare(a.ServiceID, b.ServiceID))
	})
	if sp.MinService != 0 { // PD's own reading, over entries that it may not list
		v.Held = sp.MinService
	}
	v.HeldAge = ageOf(v.Held, now)
	v.Blocker = blocker(v.Services, wanted)
	return v
}

// blocker returns the first service that is behind where TiDB wants GC. TiDB
// itself is never in its own way.
func blocker(services []Service, wanted policy.TS) *Service {
	for i := range services {
		s := &services[i]
		if s.Owner != OwnerGCWorker && s.SafePoint < wanted {
			return s
		}
	}
	return nil
}

// expired compares seconds as PD does, and as integers: the Unix time of MaxInt64
// overflows time.Time into the past. Older PD goes on listing what has expired.
func expired(s policy.ServiceSafePoint, now time.Time) bool { return s.ExpiredAt < now.Unix() }

func service(s policy.ServiceSafePoint, now time.Time, self []string) Service {
	out := Service{ServiceSafePoint: s, Owner: owner(s.ServiceID, self), Age: ageOf(s.SafePoint, now)}
	left := s.ExpiredAt - now.Unix()
	if out.Permanent = left > int64(math.MaxInt64/time.Second); !out.Permanent {
		out.ExpiresIn = time.Duration(left) * time.Second
	}
	return out
}

func owner(id string, self []string) Owner {
	switch {
	case id == gcWorkerID:
		return OwnerGCWorker
	case slices.Contains(self, id):
		return OwnerSelf
	case strings.HasPrefix(id, brPrefix), id == brBarrierID:
		return OwnerBR
	}
	return OwnerOther
}
