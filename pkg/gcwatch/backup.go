package gcwatch

import (
	"fmt"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// Protection says whether the data that a backup reads is still there and how
// long it is sure to stay.
type Protection struct {
	// Lost: GC has reached the backup's timestamp; the backup cannot be
	// completed or trusted.
	Lost bool
	// Held: the backup's own service safepoint is in PD, where it should be.
	Held      bool
	ExpiresIn time.Duration // of the hold, valid if Held and not Permanent
	Permanent bool
	Reason    string // for people, "" when held and not lost
}

// CheckBackup judges a backup at backupTS that holds GC under serviceID. br
// keeps its safepoint one below the timestamp that it reads at, and refuses to
// work once gc_safe_point >= backupTS; both are checked as br does. TiDB's own
// tikv_gc_safe_point runs ahead of PD's and does not count. A gc_safe_point
// that is later than now is not believed, so it loses nothing.
func CheckBackup(v View, backupTS policy.TS, serviceID string) Protection {
	var p Protection
	if v.Age.Kind == AgeKnown && v.GC >= backupTS {
		p.Lost = true
		p.Reason = fmt.Sprintf("GC safepoint %s (%s) has reached BackupTS %s (%s)", v.GC, clock(v.GC), backupTS, clock(backupTS))
	}
	for _, s := range v.Services {
		if s.ServiceID == serviceID {
			return p.held(s, backupTS)
		}
	}
	if !p.Lost {
		p.Reason = fmt.Sprintf("service safepoint %s is not in PD or has expired", serviceID)
	}
	return p
}

func (p Protection) held(s Service, backupTS policy.TS) Protection {
	if s.SafePoint >= backupTS {
		if !p.Lost {
			p.Reason = fmt.Sprintf("service safepoint %s is at %s, which does not hold BackupTS %s", s.ServiceID, s.SafePoint, backupTS)
		}
		return p
	}
	p.Held, p.ExpiresIn, p.Permanent = true, s.ExpiresIn, s.Permanent
	return p
}

func clock(ts policy.TS) string { return ts.Time().Format(time.RFC3339) }
