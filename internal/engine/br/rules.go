package br

import (
	"strings"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// rule says what a text of br means. The first rule that matches counts.
type rule struct {
	any        []string // substrings, one of which must be in the lower-cased text
	class      policy.OutcomeClass
	hint       string
	noResume   bool // what is left at the target must not be continued
	reduceRate bool
	retryAfter time.Duration
}

func (r rule) matches(lower string) bool {
	for _, s := range r.any {
		if strings.Contains(lower, s) {
			return true
		}
	}
	return false
}

// lockLife is how long br's checkpoint.lock holds others off (its clock is
// PD's).
const lockLife = 5 * time.Minute

// rules is br's catalogue of errors, from its errors package, its handling of
// TiKV's messages and field reports. Texts stand before codes: one code covers
// very different faults (a full bucket and a slow one are both ErrKVUnknown).
func rules() []rule {
	return append(append(targetRules(), storageRules()...), codeRules()...)
}

// targetRules are about what br found at the target, and about its timestamp.
func targetRules() []rule {
	return []rule{
		{any: []string{"backup meta file exists in"}, class: policy.OutcomeTargetInUse, noResume: true,
			hint: "this path holds a finished backup; every run needs a path of its own"},
		{any: []string{"backup lock file and sst file exist in", "backup lock file exists in"}, class: policy.OutcomeTargetInUse, noResume: true,
			hint: "this path holds what a failed backup left, without a checkpoint; use another path and delete this one"},
		{any: []string{"hashs of the configs are not the same"}, class: policy.OutcomeCheckpoint, noResume: true,
			hint: "storage, PD list, filters and credential flags must be those of the first attempt, in the same order; use a new path"},
		{any: []string{"the existing lock will expire in"}, class: policy.OutcomeTransient, retryAfter: lockLife,
			hint: "a br that was killed left its lock at the target; it expires by itself"},
		{any: []string{"there are another br("}, class: policy.OutcomeTransient, retryAfter: lockLife,
			hint: "another br uses this path; make sure that it is none of somebody else"},
		{any: []string{"backup:errbackupgcsafepointexceeded", "cannot pass gc safe point check", " exceed ts "}, class: policy.OutcomePermanent, noResume: true,
			hint: "GC has passed this backup's timestamp: start again at a new path, and find out why the service safepoint did not hold GC back"},
		{any: []string{"errbackupchecksummismatch"}, class: policy.OutcomePermanent, noResume: true,
			hint: "the data was written but does not match the cluster; do not use this backup"},
		{any: []string{"errversionmismatch"}, class: policy.OutcomePermanent,
			hint: "use a br of the cluster's own release"},
	}
}

// storageRules are about the target's storage as br or TiKV saw it.
func storageRules() []rule {
	return []rule{
		{any: []string{"slowdown", "please reduce your request rate", "toomanyrequests"}, class: policy.OutcomeTransient, reduceRate: true,
			hint: "the storage asks for fewer requests: use fewer threads"},
		{any: []string{"requesttimeout", "put object timeout", "timeout after", "internalerror", "serviceunavailable", "invalidpart",
			"couldn't find aws credentials", "connection reset by peer", "connection refused", "end of file before message length reached"},
			class: policy.OutcomeTransient},
		{any: []string{"accessdenied", "signaturedoesnotmatch", "invalidaccesskeyid", "nosuchbucket", "errstorageinvalidpermission"}, class: policy.OutcomePermanent,
			hint: "check the rights and keys for this storage, those of TiKV too"},
		{any: []string{"s3 bucket and region are not matched"}, class: policy.OutcomePermanent,
			hint: "the configured region is not that of the bucket"},
		{any: []string{"kind: notfound", "kind: permissiondenied", "os { code:", "file or directory not found on tikv node",
			"i/o permission denied error occurs on tikv node", "no space left on device", "errkvdiskfull", "code: 22(invalid argument)"},
			class: policy.OutcomePermanent},
		{any: []string{"retried too many times, give up"}, class: policy.OutcomeTransient,
			hint: "br does not pass on what the TiKV said: look into the log of that store; a full or unwritable target is the commonest cause"},
	}
}

// codeRules decide by br's own error code when no text did.
func codeRules() []rule {
	return []rule{
		{any: []string{"errinvalidargument", "errstorageinvalidconfig", "errkvclusteridmismatch", "cluster id mismatch", "errnottikvstorage",
			"errenvnotspecified", "errunsupportedoperation", "errbackupinvalidrange", "errundefineddbortable",
			"unknown flag", "unknown shorthand", "unknown command", "unrecognized level", "unsupport log format"},
			class: policy.OutcomePermanent},
		{any: []string{"[pd] failed to get cluster id", "errpdleadernotfound"}, class: policy.OutcomeTransient,
			hint: "PD did not answer br"},
	}
}
