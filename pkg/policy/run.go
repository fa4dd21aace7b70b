package policy

import "time"

// RunStatus is the state of a run as people see it.
type RunStatus string

// The states of a run. A run starts queued and ends in one of the states for
// which Final is true.
const (
	RunQueued    RunStatus = "queued"
	RunWaiting   RunStatus = "waiting"
	RunPreflight RunStatus = "preflight"
	RunRunning   RunStatus = "running"
	RunThrottled RunStatus = "throttled"
	RunPaused    RunStatus = "paused"
	RunVerifying RunStatus = "verifying"

	RunSucceeded   RunStatus = "succeeded"
	RunFailed      RunStatus = "failed"
	RunAborted     RunStatus = "aborted"     // by the impact guard
	RunCancelled   RunStatus = "cancelled"   // by a person
	RunSkipped     RunStatus = "skipped"     // by policy, before anything was touched
	RunMissed      RunStatus = "missed"      // its slot passed while nothing could start it
	RunInterrupted RunStatus = "interrupted" // brctl died during it
)

// Final reports whether no further work belongs to a run in this state.
func (s RunStatus) Final() bool {
	switch s {
	case RunSucceeded, RunFailed, RunAborted, RunCancelled, RunSkipped, RunMissed, RunInterrupted:
		return true
	case RunQueued, RunWaiting, RunPreflight, RunRunning, RunThrottled, RunPaused, RunVerifying:
		return false
	}
	return false
}

// RunReason says in one word why a run did not simply succeed; the details are
// in its events and its message.
type RunReason string

// The reasons. The list is closed: alerts and scripts match on it.
const (
	ReasonOverlap         RunReason = "overlap"
	ReasonWindow          RunReason = "window"
	ReasonBudget          RunReason = "budget"
	ReasonCPU             RunReason = "cpu"
	ReasonGC              RunReason = "gc"
	ReasonStoreUnhealthy  RunReason = "store_unhealthy"
	ReasonConflictingWork RunReason = "conflicting_work"
	ReasonStorage         RunReason = "storage"
	ReasonCredentials     RunReason = "credentials"
	ReasonVersion         RunReason = "version"
	ReasonSuspended       RunReason = "suspended"
	ReasonNotLeader       RunReason = "not_leader"
	ReasonDeadline        RunReason = "deadline"
	ReasonNoProgress      RunReason = "no_progress"
	ReasonUnavailable     RunReason = "unavailable" // PD or TiDB did not answer
	ReasonPrivilege       RunReason = "privilege"   // a grant is missing
	ReasonSettings        RunReason = "settings"    // a setting could not be applied
	ReasonPlan            RunReason = "plan"        // no plan meets the limits
	ReasonEngine          RunReason = "engine"      // br failed
	ReasonArtifact        RunReason = "artifact"    // br said success; the backup is not there
	ReasonOperator        RunReason = "operator"    // a person stopped it
	ReasonLeaseLost       RunReason = "lease_lost"
	ReasonDied            RunReason = "died"     // brctl itself died
	ReasonInternal        RunReason = "internal" // a panic or a full disk of our own
)

// Event is one thing that happened in a run, written before its effect.
type Event struct {
	At      time.Time      `json:"at"`
	Kind    string         `json:"kind"` // snake_case, from the runner's own list
	Message string         `json:"message"`
	Data    map[string]any `json:"data,omitempty"`
}
