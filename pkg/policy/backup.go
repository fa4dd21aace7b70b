package policy

import "time"

// Invocation is everything needed to start, restart and recognise one backup
// by an external engine. It is frozen when the run is planned: a second attempt
// uses the same bytes, because br refuses to resume from a checkpoint when its
// storage string, PD list, filters or credentials flags differ. It carries no
// secret; those are named by CredentialEnv and resolved at each start.
type Invocation struct {
	Engine        string            `json:"engine"` // "br"
	Binary        string            `json:"binary"`
	Args          []string          `json:"args"`
	StorageURL    string            `json:"storage_url"`
	LogFile       string            `json:"log_file"`       // the engine's own log
	OutputFile    string            `json:"output_file"`    // what it printed
	CredentialEnv map[string]string `json:"credential_env"` // variable → where its value is read (never the value)
}

// ChildRef identifies a process across our own death: a pid alone may have been
// given to another process, a pid with its start time and the boot may not.
type ChildRef struct {
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"start_ticks"` // field 22 of /proc/PID/stat
	BootID     string `json:"boot_id"`
}

// AttemptEventKind is what an engine reports while it works.
type AttemptEventKind string

// The kinds of attempt events.
const (
	AttemptProgress   AttemptEventKind = "progress"
	AttemptBackupTS   AttemptEventKind = "backup_ts"
	AttemptSafePoint  AttemptEventKind = "service_safe_point"
	AttemptRound      AttemptEventKind = "round"
	AttemptDiagnostic AttemptEventKind = "diagnostic" // a retry or warning worth showing
)

// AttemptEvent is one report of a working engine. Only the fields of its kind
// are set.
type AttemptEvent struct {
	Kind             AttemptEventKind
	Progress         Progress
	BackupTS         TS
	ServiceSafePoint string // service id in PD
	Round            int
	IncompleteRanges int
	Message          string
}

// Progress is how far an engine says it is. br counts responses, errors
// included: 100 % is not "done".
type Progress struct {
	Step  string  `json:"step"`  // "Full Backup", "Checksum"
	Ratio float64 `json:"ratio"` // 0..1
	Done  uint64  `json:"done"`  // 0 when only the ratio is known
	Total uint64  `json:"total"`
}

// OutcomeClass is what kind of end an attempt came to; it decides what may be
// tried next.
type OutcomeClass string

// The classes of outcome.
const (
	OutcomeSuccess     OutcomeClass = "success"
	OutcomeTransient   OutcomeClass = "transient"     // the same invocation may work later
	OutcomePermanent   OutcomeClass = "permanent"     // a person must act first
	OutcomeTargetInUse OutcomeClass = "target_in_use" // never with this path again
	OutcomeCheckpoint  OutcomeClass = "checkpoint"    // the checkpoint cannot be resumed as asked
	OutcomeTool        OutcomeClass = "tool"          // the engine itself is broken or lied
	OutcomeKilled      OutcomeClass = "killed"        // by a signal
)

// Outcome is how an attempt ended.
type Outcome struct {
	Class        OutcomeClass  `json:"class"`
	Reason       string        `json:"reason"`         // first real error, bounded, without secrets
	Code         string        `json:"code,omitempty"` // engine's own code, e.g. BR:Common:ErrVersionMismatch
	Hint         string        `json:"hint,omitempty"`
	ExitCode     int           `json:"exit_code"`        // -1 when killed by a signal
	Signal       string        `json:"signal,omitempty"` // e.g. "killed"
	Resumable    bool          `json:"resumable"`        // a checkpoint is left to continue from
	RetryAfter   time.Duration `json:"retry_after"`      // 0: no opinion
	ReduceRate   bool          `json:"reduce_rate"`      // the storage asked for fewer requests
	Summary      *Summary      `json:"summary,omitempty"`
	BackupTS     TS            `json:"backup_ts"` // 0 when not reached
	ServiceID    string        `json:"service_id,omitempty"`
	Stopped      bool          `json:"stopped"` // we asked it to stop
	EscapedChild bool          `json:"escaped_child,omitempty"`
}

// Summary is the engine's own success summary.
type Summary struct {
	BackupTS     TS            `json:"backup_ts"`
	Ranges       uint64        `json:"ranges"`
	RangesFailed uint64        `json:"ranges_failed"`
	SizeBytes    uint64        `json:"size_bytes"` // bytes of the files written
	TotalKV      uint64        `json:"total_kv"`
	Took         time.Duration `json:"took"`
	Empty        bool          `json:"empty"` // nothing was selected
}

// Artifact is a finished backup as read back from its storage.
type Artifact struct {
	StorageURL     string   `json:"storage_url"`
	BackupTS       TS       `json:"backup_ts"` // end_version of backupmeta
	ClusterID      uint64   `json:"cluster_id"`
	ClusterVersion string   `json:"cluster_version"`
	EngineVersion  string   `json:"engine_version"`
	SizeBytes      uint64   `json:"size_bytes"` // data and metadata
	Ranges         int      `json:"ranges"`     // data files listed, all index levels
	Schemas        int      `json:"schemas"`
	Stores         []uint64 `json:"stores,omitempty"` // store ids whose files are visible here
	// MissingStores are those of which fewer data files are visible here than the
	// metadata lists: with local:// a sign that not every host shares the mount.
	MissingStores []uint64 `json:"missing_stores,omitempty"`
}

// ServiceSafePoint is one service's hold on GC, as PD lists it.
type ServiceSafePoint struct {
	ServiceID string `json:"service_id"`
	ExpiredAt int64  `json:"expired_at"` // Unix seconds; MaxInt64 = never
	SafePoint TS     `json:"safe_point"`
}

// SafePoints is PD's whole list at one moment.
type SafePoints struct {
	GC         TS                 `json:"gc_safe_point"`          // 0: GC never ran
	MinService TS                 `json:"min_service_safe_point"` // 0 when PD does not say
	Services   []ServiceSafePoint `json:"services"`
}
