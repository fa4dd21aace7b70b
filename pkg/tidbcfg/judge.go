package tidbcfg

import (
	"fmt"
	"strings"

	"github.com/brctl/brctl/pkg/policy"
)

// judge decides what became of a SET CONFIG from three witnesses: the
// statement's own result r, its warnings, and the value read back. The value
// read back counts most; the warnings decide where it is missing and tell
// "changed in memory only" apart.
//
// An error (as opposed to a warning) means that TiDB sent nothing to any node:
// it parses, checks privileges and looks the instance up before.
func judge(want policy.Setting, r reply, got policy.Reading) policy.SetResult {
	res := policy.SetResult{Setting: want, Message: explainWarnings(r.warnings)}
	if r.err != nil {
		res.State, res.Message = policy.SetUnknown, r.err.Error()
		if answered(r.err) {
			res.State, res.Message = policy.SetRefused, explainRefusal(want.Instance, r.err)
		}
		return res
	}
	said := classifyWarnings(r.warnings)
	if !got.Known {
		res.State = unseen(said)
		res.Message = joinText(res.Message, got.Err)
		return res
	}
	res.State = seen(said, SameValue(want.Want, got.Value))
	switch res.State {
	case policy.SetApplied:
		res.Message = ""
	case policy.SetDifferent:
		res.Message = joinText(fmt.Sprintf("asked %s, uses %s", want.Want, got.Value), joinWarnings(r.warnings))
	case policy.SetUnknown:
		return res
	case policy.SetNotPersisted, policy.SetRefused:
	}
	res.Got = got.Value
	return res
}

// verdict is what the warnings alone say.
type verdict int

const (
	accepted     verdict = iota // no warning
	notPersisted                // changed in memory, the instance's file was not written
	refused                     // the instance said no
	failedWith                  // the request was not delivered, or was answered with another failure
	noAnswer                    // delivered, perhaps, and no answer came
)

// classifyWarnings matches the texts of TiKV's status server ("failed to" since
// v4, "fail to" before) and of Go's HTTP client inside TiDB.
func classifyWarnings(warnings []string) verdict {
	text := strings.Join(warnings, "; ")
	switch {
	case text == "":
		return accepted
	case strings.Contains(text, "failed to persist"):
		return notPersisted
	case containsAny(text, "failed to update", "fail to update", "failed to decode"):
		return refused
	case containsAny(text, "bad request to ", " failed: ", "dial tcp", "no Host in request URL"):
		return failedWith
	}
	return noAnswer
}

// unseen judges without a value read back.
func unseen(v verdict) policy.SetState {
	switch v {
	case notPersisted:
		return policy.SetNotPersisted
	case refused:
		return policy.SetRefused
	case accepted, failedWith, noAnswer:
	}
	return policy.SetUnknown
}

// seen judges with a value read back; same says that it is the wanted one.
func seen(v verdict, same bool) policy.SetState {
	switch {
	case same && v == notPersisted:
		return policy.SetNotPersisted
	case same:
		return policy.SetApplied
	case v == accepted || v == notPersisted:
		return policy.SetDifferent
	case v == noAnswer:
		return policy.SetUnknown // it may still arrive
	}
	return policy.SetRefused
}

// explainWarnings adds what to look at when TiDB did not reach the TiKV.
func explainWarnings(warnings []string) string {
	text := strings.Join(warnings, "; ")
	if containsAny(text, "dial tcp", "no Host in request URL") {
		return "TiDB does not reach this TiKV's status port (check its advertise-status-addr): " + text
	}
	return text
}

// explainRefusal adds why an instance that exists may be unknown to SET CONFIG.
func explainRefusal(instance string, err error) string {
	if strings.Contains(err.Error(), "is not found in this cluster") && strings.ToLower(instance) != instance {
		return err.Error() + " (TiDB looks for the instance in lower case: a store address with upper-case letters cannot be changed by SQL)"
	}
	return err.Error()
}

func containsAny(text string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

func joinText(text string, err error) string {
	switch {
	case err == nil:
		return text
	case text == "":
		return err.Error()
	}
	return text + "; " + err.Error()
}
