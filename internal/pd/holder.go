package pd

import (
	"fmt"
	"time"
)

// LeaseInfo is what a holder says of itself to those that it keeps out. It is
// the JSON value of the lease's key.
type LeaseInfo struct {
	Owner    string    `json:"owner"` // host name
	PID      int       `json:"pid"`
	RunID    string    `json:"run_id"`
	StateDir string    `json:"state_dir"`
	StateID  string    `json:"state_id,omitempty"` // names the state directory for life, wherever it is mounted
	Since    time.Time `json:"since"`
}

// HeldError says who has the lease.
type HeldError struct {
	Info LeaseInfo     // zero when the value could not be read
	Key  string        // in PD's etcd
	Rev  int64         // the key's create revision: names this holding of the lease
	TTL  time.Duration // until the lease ends if its holder is dead, 0 when unknown
}

func (e *HeldError) Error() string {
	text := fmt.Sprintf("lease %s is held by %s", e.Key, e.Info)
	if e.TTL > 0 {
		text += fmt.Sprintf("; it ends within %s if its holder is dead", e.TTL)
	}
	return text
}

// String is the holder in words.
func (i LeaseInfo) String() string {
	if i == (LeaseInfo{}) {
		return "an unknown holder"
	}
	return fmt.Sprintf("run %s on %s (pid %d, state directory %s) since %s",
		i.RunID, i.Owner, i.PID, i.StateDir, i.Since.UTC().Format(time.RFC3339))
}
