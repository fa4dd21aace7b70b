// Package gcwatch reads PD's GC safepoints the way a person on call would:
// whether a backup's data is still there, whether its hold on GC stands, and who
// else holds GC back.
//
// The reading (CheckBackup) is pure. The package never changes a safepoint,
// except that Release ends the hold of one of our own backups: an entry of
// somebody else is reported, however dead it looks.
//
// What newer PD calls a GC barrier appears in the same list as a service
// safepoint, next to a gc_worker entry that PD makes up from its transaction
// safepoint; both are read the same way.
package gcwatch

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// gcWorkerID is TiDB's own GC: its entry is the point up to which TiDB wants to
// delete.
const gcWorkerID = "gc_worker"

// Protection says whether the data that a backup reads is still there, whether
// it is sure to stay, and who else keeps old data. Texts are for people.
type Protection struct {
	// Lost: GC has reached the backup's timestamp; the backup cannot be
	// completed or trusted.
	Lost   bool
	Reason string // why Lost, else ""

	// Unheld says why the backup's own service safepoint does not hold its data:
	// it is missing, has expired, or came too late. "" when it does, or when its
	// id is not known yet. br renews its hold three times within its time to
	// live, so a moment without is no loss yet.
	Unheld string

	// Blocker names the service besides this backup that keeps GC furthest
	// behind where TiDB wants it, with how old its safepoint is and when it
	// expires; "" when there is none.
	Blocker string
}

// CheckBackup judges a backup at backupTS that holds GC under serviceID ("" when
// that is not known yet) by PD's list. now must be PD's clock (its TSO), read
// after the list: with our own clock running late, a GC safepoint of this
// moment would look impossible.
//
// br keeps its safepoint one below the timestamp that it reads at, and refuses to
// work once gc_safe_point >= backupTS; both are checked as br does. TiDB's own
// tikv_gc_safe_point runs ahead of PD's and does not count. A GC safepoint later
// than now (PD has been seen to print such, and MaxUint64) is not believed: no
// GC can have got there, so it loses nothing.
func CheckBackup(sp policy.SafePoints, now time.Time, backupTS policy.TS, serviceID string) Protection {
	live := unexpired(sp.Services, now)
	p := Protection{Unheld: unheld(live, backupTS, serviceID), Blocker: blocker(live, now, serviceID)}
	if sp.GC >= backupTS && !sp.GC.Time().After(now) {
		p.Lost = true
		p.Reason = fmt.Sprintf("GC safepoint %s (%s) has reached BackupTS %s (%s)", sp.GC, clock(sp.GC), backupTS, clock(backupTS))
	}
	return p
}

// unexpired returns the services that count, the one that holds back most first.
// Older PD goes on listing what has expired. Seconds are compared as PD does, and
// as integers: the Unix time of MaxInt64 overflows time.Time into the past.
func unexpired(services []policy.ServiceSafePoint, now time.Time) []policy.ServiceSafePoint {
	var out []policy.ServiceSafePoint
	for _, s := range services {
		if s.ExpiredAt >= now.Unix() {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b policy.ServiceSafePoint) int {
		return cmp.Or(cmp.Compare(a.SafePoint, b.SafePoint), cmp.Compare(a.ServiceID, b.ServiceID))
	})
	return out
}

func unheld(live []policy.ServiceSafePoint, backupTS policy.TS, serviceID string) string {
	if serviceID == "" {
		return ""
	}
	for _, s := range live {
		switch {
		case s.ServiceID != serviceID:
		case s.SafePoint < backupTS:
			return ""
		default:
			return fmt.Sprintf("service safepoint %s is at %s, which does not hold BackupTS %s", serviceID, s.SafePoint, backupTS)
		}
	}
	return fmt.Sprintf("service safepoint %s is not in PD or has expired", serviceID)
}

// blocker finds the first service that is behind where TiDB wants GC, or behind
// anything where PD does not list gc_worker. TiDB is never in its own way.
func blocker(live []policy.ServiceSafePoint, now time.Time, self string) string {
	wanted := policy.NoLimitTS
	for _, s := range live {
		if s.ServiceID == gcWorkerID {
			wanted = s.SafePoint
		}
	}
	for _, s := range live {
		if s.ServiceID != gcWorkerID && s.ServiceID != self && s.SafePoint < wanted {
			return fmt.Sprintf("%s (safepoint %s, %s)", s.ServiceID, age(s.SafePoint, now), expiry(s.ExpiredAt, now))
		}
	}
	return ""
}

// age reads the ends of the number range as the signs that PD uses them for.
func age(ts policy.TS, now time.Time) string {
	switch {
	case ts == 0:
		return "0: keeps everything"
	case ts.Time().After(now):
		return "later than now"
	}
	return now.Sub(ts.Time()).Round(time.Second).String() + " old"
}

func expiry(at int64, now time.Time) string {
	left := at - now.Unix()
	if left > int64(math.MaxInt64/time.Second) {
		return "never expires"
	}
	return "expires in " + (time.Duration(left) * time.Second).String()
}

func clock(ts policy.TS) string { return ts.Time().Format(time.RFC3339) }
