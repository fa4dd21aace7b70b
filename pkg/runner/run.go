package runner

import (
	"slices"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// Step is where in its life a run stands. It is finer than policy.RunStatus
// and is what a run is resumed from.
type Step string

// The steps, in order.
const (
	StepLease     Step = "lease"
	StepPreflight Step = "preflight"
	StepPlan      Step = "plan"
	StepApply     Step = "apply"
	StepSettle    Step = "settle"
	StepBackup    Step = "backup"
	StepVerify    Step = "verify"
	StepEnd       Step = "end"
	StepRestore   Step = "restore"
	StepRecord    Step = "record"
	StepDone      Step = "done"
)

// stepInfo is what there is to know of a step.
type stepInfo struct {
	next   Step             // in a run in which nothing goes wrong
	status policy.RunStatus // what people see meanwhile; "" keeps the one that the run came with
	doing  string           // for people
}

func (s Step) info() stepInfo {
	switch s {
	case StepLease:
		return stepInfo{StepPreflight, policy.RunQueued, "take the cluster's lease"}
	case StepPreflight:
		return stepInfo{StepPlan, policy.RunPreflight, "check cluster, grants, br and target"}
	case StepPlan:
		return stepInfo{StepApply, policy.RunPreflight, "plan the backup"}
	case StepApply:
		return stepInfo{StepSettle, policy.RunPreflight, "set TiKV's backup settings"}
	case StepSettle:
		return stepInfo{StepBackup, policy.RunPreflight, "wait until TiKV applies them"}
	case StepBackup:
		return stepInfo{StepVerify, policy.RunRunning, "run br"}
	case StepVerify:
		return stepInfo{StepEnd, policy.RunVerifying, "read the backup back"}
	case StepEnd:
		return stepInfo{StepRestore, "", "make sure that br is gone"}
	case StepRestore:
		return stepInfo{StepRecord, "", "put settings back"}
	case StepRecord:
		return stepInfo{StepDone, "", "record the end"}
	default:
		return stepInfo{StepDone, "", ""}
	}
}

// Doing says what the step does, for people; "" for one that does nothing.
func (s Step) Doing() string { return s.info().doing }

// undoes reports whether s belongs to the end of a run, which nothing may
// skip.
func (s Step) undoes() bool { return s == StepEnd || s == StepRestore || s == StepRecord }

// Run is one attempt chain to make one backup: all that is known of it.
type Run struct {
	ID          string
	Schedule    string
	Trigger     string // "manual", "schedule"
	ClusterName string
	ClusterID   uint64
	StorageURL  string // where this run, and no other, writes

	Status policy.RunStatus
	Step   Step
	// Verdict is the final status that the run will get once everything is put
	// back; empty while nothing has gone wrong and the backup is not verified.
	Verdict policy.RunStatus
	Reason  policy.RunReason
	Message string // the reason in a sentence, for people

	Plan             *policy.Plan
	Invocation       *policy.Invocation
	Outcome          *policy.Outcome // of the last attempt
	Artifact         *policy.Artifact
	Child            *policy.ChildRef // the engine's process while it may live
	Attempts         int
	BackupTS         policy.TS
	ServiceSafePoint string // the service id that the engine holds in PD
	Settings         []SettingChange
	Warnings         []string
	FenceToken       int64 // of the lease under which it ran

	CreatedAt time.Time // when the run was asked for
	EndedAt   time.Time // when it got its final status

	EngineStartedAt time.Time // when the engine was first started
	EngineEndedAt   time.Time // when its last attempt was over
}

// Size returns the bytes of the backup's files, 0 while unknown.
func (r *Run) Size() uint64 {
	if r.Artifact != nil && r.Artifact.SizeBytes > 0 {
		return r.Artifact.SizeBytes
	}
	if r.Outcome != nil && r.Outcome.Summary != nil {
		return r.Outcome.Summary.SizeBytes
	}
	return 0
}

// Duration returns how long the engine took, over all attempts: what the
// forecast speaks of. It is 0 when the engine was never started.
func (r *Run) Duration() time.Duration {
	if r.EngineStartedAt.IsZero() || r.EngineEndedAt.IsZero() {
		return 0
	}
	return r.EngineEndedAt.Sub(r.EngineStartedAt)
}

func (r *Run) warn(text string) {
	if !slices.Contains(r.Warnings, text) {
		r.Warnings = append(r.Warnings, text)
	}
}

// conclude sets the verdict once; what is found wrong later, while cleaning
// up, becomes a warning and does not hide the first cause.
func (r *Run) conclude(verdict policy.RunStatus, reason policy.RunReason, message string) {
	if r.Verdict != "" {
		if message != "" && message != r.Message {
			r.warn(message)
		}
		return
	}
	r.Verdict, r.Reason, r.Message = verdict, reason, message
}

// SettingChange is one setting that the run changed.
type SettingChange struct {
	policy.SettingKey
	StoreID  uint64
	Old      string
	Set      string
	State    policy.SetState // of the SET
	Restored RestoreState
	Message  string
}

// RestoreState is what became of putting a setting back.
type RestoreState string

// The restore states.
const (
	RestorePending   RestoreState = "pending"   // not yet put back
	Restored         RestoreState = "restored"  // has its old value again
	RestoreForeign   RestoreState = "foreign"   // someone else changed it meanwhile: left alone
	RestoreGone      RestoreState = "gone"      // the instance is no longer part of the cluster
	RestoreUntouched RestoreState = "unchanged" // it never left its old value
)

// Restore is the outcome of one setting's restore.
type Restore struct {
	policy.SettingKey
	Old     string
	Set     string // the value of ours that was sent last
	State   RestoreState
	Message string
}
