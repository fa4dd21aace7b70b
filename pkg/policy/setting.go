package policy

import "fmt"

// The TiKV settings that brctl may change, all online, per instance.
const (
	ItemNumThreads      = "backup.num-threads"
	ItemBatchSize       = "backup.batch-size"
	ItemRefreshInterval = "backup.auto-tune-refresh-interval"
)

// SettingKey names one setting of one instance.
type SettingKey struct {
	Instance string `json:"instance"` // the store's Address
	Name     string `json:"name"`
}

func (k SettingKey) String() string { return k.Instance + " " + k.Name }

// Setting is a value that a plan wants an instance to have.
type Setting struct {
	SettingKey
	StoreID uint64 `json:"store_id"`
	Want    string `json:"want"` // as SHOW CONFIG prints it: "4", "10s"
}

func (s Setting) String() string { return fmt.Sprintf("%s = %s", s.SettingKey, s.Want) }

// Reading is the value that an instance was seen to have. Known is false when
// it could not be read; Err then says why and Value means nothing.
type Reading struct {
	SettingKey
	Value string
	Known bool
	Err   error
}

// String is here because the one of the embedded key would hide the value.
func (r Reading) String() string {
	if !r.Known {
		return fmt.Sprintf("%s unknown: %v", r.SettingKey, r.Err)
	}
	return fmt.Sprintf("%s = %s", r.SettingKey, r.Value)
}

// SetState is what became of one SET CONFIG, judged by reading back.
type SetState string

// The states of a SET CONFIG.
const (
	SetApplied      SetState = "applied"       // read back as asked
	SetNotPersisted SetState = "not_persisted" // applied in memory; the instance's file was not written
	SetDifferent    SetState = "different"     // accepted, but the instance uses another value (Got)
	SetRefused      SetState = "refused"       // the instance still has its old value
	SetUnknown      SetState = "unknown"       // no answer; it may or may not have been applied
)

// SetResult is what became of one wanted setting.
type SetResult struct {
	Setting
	State   SetState
	Got     string // value read back; "" when State is SetUnknown
	Message string // the instance's or TiDB's own words, "" when applied
}

// String is here because the one of the embedded setting would hide the result.
func (r SetResult) String() string {
	text := fmt.Sprintf("%s: %s", r.Setting, r.State)
	if r.Got != "" {
		text += ", got " + r.Got
	}
	if r.Message != "" {
		text += " (" + r.Message + ")"
	}
	return text
}

// MayHaveChanged reports whether the instance may now differ from before, so
// that the old value has to be put back.
func (r SetResult) MayHaveChanged() bool { return r.State != SetRefused }
