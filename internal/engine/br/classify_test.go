package br_test

import (
	"strings"
	"testing"
	"time"

	"github.com/brctl/brctl/internal/engine/br"
	"github.com/brctl/brctl/internal/proc"
	"github.com/brctl/brctl/pkg/policy"
)

func TestErrorsAreClassifiedByWhatTheyMean(t *testing.T) {
	const (
		transient = policy.OutcomeTransient
		permanent = policy.OutcomePermanent
	)
	for name, tt := range map[string]struct {
		text   string
		class  policy.OutcomeClass
		code   string
		hint   string // a part of it
		after  time.Duration
		reduce bool
		stale  bool // a checkpoint there may not be continued
	}{
		"3: another release": {
			text:  "running BR in incompatible version of cluster, if you believe it's OK, use --check-requirements=false to skip.: TiKV node tikv-2.example:20160 version 5.4.0 and BR v6.0.0-nightly major version mismatch, please use the same version of BR: [BR:Common:ErrVersionMismatch]version mismatch",
			class: permanent, code: "BR:Common:ErrVersionMismatch", hint: "own release"},
		"17: finished backup": {
			text:  "backup meta file exists in s3://bucket-a/full/20260101/backupmeta, there may be some backup files in the path already, please specify a correct backup directory!: [BR:Common:ErrInvalidArgument]invalid argument",
			class: policy.OutcomeTargetInUse, code: "BR:Common:ErrInvalidArgument", hint: "path of its own", stale: true},
		"18: leftover": {
			text:  "backup lock file and sst file exist in local:///b/backup.lock, there are some backup files in the path already, but hasn't checkpoint metadata, please specify a correct backup directory!: [BR:Common:ErrInvalidArgument]invalid argument",
			class: policy.OutcomeTargetInUse, code: "BR:Common:ErrInvalidArgument", stale: true},
		"18: leftover, old text": {text: "backup lock file exists in local:///b, please specify a correct backup directory!", class: policy.OutcomeTargetInUse, stale: true},
		"19: other arguments": {
			text:  "failed to backup to s3://bucket-a/full/x, because the checkpoint mode is used, but the hashs of the configs are not the same. Please check the config: [BR:Common:ErrInvalidArgument]invalid argument",
			class: policy.OutcomeCheckpoint, code: "BR:Common:ErrInvalidArgument", hint: "same order", stale: true},
		"21: GC passed": {
			text: "GC safepoint 414489731860529152 exceed TS 414489628130148353", class: permanent, hint: "GC safepoint is 6m35.7s ahead", stale: true},
		"lock of a killed br": {
			text:  "The existing lock will expire in 276 seconds. There may be another BR(470829050302038021) running. If not, you can wait for the lock to expire, or delete the file `local:///bcheckpoints/backup/checkpoint.lock` manually.",
			class: transient, after: 277 * time.Second},
		"24: not mounted": {
			text:  `error happen in store 1001 at tikv-0.example:20160: Io(Os { code: 2, kind: NotFound, message: "No such file or directory" }): [BR:KV:ErrKVStorage]tikv storage occur I/O error`,
			class: permanent, code: "BR:KV:ErrKVStorage", hint: "store 1001 at tikv-0.example:20160; errno 2,"},
		"24: wrong owner": {
			text:  `error happen in store 5 at tikv-0.example:20160: Io(Os {code: 13, kind: PermissionDenied, message: "Permission denied" }): [BR:KV:ErrKVStorage]tikv storage occur I/O error`,
			class: permanent, code: "BR:KV:ErrKVStorage", hint: "running br as root does not help"},
		"24: samba": {text: `error happen in store 7: Code: 22(invalid argument)`, class: permanent, hint: "store 7; errno 22"},
		"26: denied to TiKV": {
			text:  `msg:"Io(Custom { kind: Other, error: \\\"failed to put object Request ID: None Body: <?xml version=\\\\\\\"1.0\\\\\\\"?><Error><Code>AccessDenied</Code></Error>`,
			class: permanent, hint: "storage code AccessDenied, met by TiKV"},
		"27: role comes and goes": {text: "Couldn't find AWS credentials in default sources or k8s environment", class: transient},
		"28: slow down": {
			text:  `error happen in store 4 at kv:20160: code: Some(\\\"SlowDown\\\"), message: Some("Please reduce your request rate."): [BR:KV:ErrKVUnknown]unknown tikv error`,
			class: transient, code: "BR:KV:ErrKVUnknown", hint: "storage code SlowDown", reduce: true},
		"28: put timeout":     {text: "failed to put object timeout after 15mins for upload in s3 storage x: [BR:KV:ErrKVUnknown]unknown tikv error", class: transient, code: "BR:KV:ErrKVUnknown"},
		"28: request timeout": {text: "<Error><statusCode>400</statusCode><Code>RequestTimeout</Code></Error>", class: transient, hint: "storage code RequestTimeout"},
		"PD away":             {text: "[pd] failed to get cluster id", class: transient, hint: "PD did not answer"},
		"unknown flag":        {text: "unknown flag: --nope", class: permanent},
		"other argument":      {text: "invalid compression type 'x': [BR:Common:ErrInvalidArgument]invalid argument", class: permanent, code: "BR:Common:ErrInvalidArgument"},
		"checksum":            {text: "x: [BR:Backup:ErrBackupChecksumMismatch]backup checksum mismatch", class: permanent, code: "BR:Backup:ErrBackupChecksumMismatch", stale: true},
		"given up in a round": {text: "unknown error, retried too many times, give up: [BR:KV:ErrKVStorage]tikv storage occur I/O error", class: transient, code: "BR:KV:ErrKVStorage", hint: "log of that store"},
		"disk full":           {text: "error happen in store 2: Io(Os { code: 28, kind: StorageFull })", class: permanent, hint: "no space"},
		"never seen before":   {text: "something else", class: transient},
	} {
		t.Run(name, func(t *testing.T) {
			o, canResume := br.Judge(report(br.FromStderr, "Error: "+tt.text), proc.Result{ExitCode: 1})
			if o.Class != tt.class || o.Code != tt.code || o.RetryAfter != tt.after && tt.after != 0 || o.ReduceRate != tt.reduce || canResume == tt.stale {
				t.Errorf("got %+v, may resume %v; want %+v", o, canResume, tt)
			}
			if !strings.Contains(o.Hint, tt.hint) {
				t.Errorf("hint %q lacks %q", o.Hint, tt.hint)
			}
			if o.Reason != tt.text {
				t.Errorf("reason %q", o.Reason)
			}
		})
	}
}

// Case 26: a bar without its line end stands before the error.
func TestABarDoesNotHideTheErrorBehindIt(t *testing.T) {
	o, _ := br.Judge(report(br.FromStdout, `Full backup <-.....> 0.47%Error: msg:"failed to put object <Error><Code>AccessDenied</Code>"`), proc.Result{ExitCode: 1})
	if o.Class != policy.OutcomePermanent || !strings.Contains(o.Hint, "AccessDenied") {
		t.Errorf("got %+v", o)
	}
}

func TestTheEndOfTheProcessDecidesWithTheText(t *testing.T) {
	ok := report(br.FromStdout, header+summaries()["v8.5 of the lab"].line)
	canceled := report(br.FromStderr, "Error: context canceled")
	for name, tt := range map[string]struct {
		report br.Report
		res    proc.Result
		class  policy.OutcomeClass
		reason string
	}{
		"0 with a summary":           {ok, proc.Result{}, policy.OutcomeSuccess, ""},
		"1: 0 without a summary":     {br.Report{}, proc.Result{}, policy.OutcomeTool, "without a success summary"},
		"0 with a failed summary":    {br.Report{FailedSummary: true, FirstError: "x"}, proc.Result{}, policy.OutcomeTool, "without a success summary: x"},
		"0 with failed ranges":       {br.Report{Summary: &policy.Summary{RangesFailed: 3}}, proc.Result{}, policy.OutcomeTool, "3 failed ranges"},
		"1 in spite of a summary":    {ok, proc.Result{ExitCode: 1}, policy.OutcomeTool, "said no reason"},
		"stopped by us":              {canceled, proc.Result{ExitCode: 1, Stopped: true}, policy.OutcomeTransient, "stopped by brctl"},
		"stopped by somebody":        {canceled, proc.Result{ExitCode: 1}, policy.OutcomeTransient, "interrupted by somebody else"},
		"13: killed by the kernel":   {br.Report{}, proc.Result{ExitCode: -1, SignalNo: 9, Signal: "killed"}, policy.OutcomeKilled, "killed by signal 9 (OOM?)"},
		"killed by us":               {br.Report{}, proc.Result{ExitCode: -1, SignalNo: 9, Stopped: true, Killed: true}, policy.OutcomeKilled, "sent by brctl"},
		"terminated":                 {br.Report{}, proc.Result{ExitCode: -1, SignalNo: 15}, policy.OutcomeKilled, "killed by signal 15"},
		"panic of its own":           {br.Report{Panic: "panic: nil map"}, proc.Result{ExitCode: 2}, policy.OutcomeTool, "br panicked: panic: nil map"},
		"nothing said":               {br.Report{}, proc.Result{ExitCode: 1}, policy.OutcomeTool, "said no reason"},
		"9: stopped while retrying":  {br.Report{LastWarning: "no such host"}, proc.Result{ExitCode: 1, Stopped: true}, policy.OutcomeTransient, "no such host"},
		"canceled after a real one":  {br.Report{PrintedError: "context canceled", FirstError: "boom"}, proc.Result{ExitCode: 1}, policy.OutcomeTransient, "boom"},
		"GC panic, from the log":     {br.Report{Panic: "cannot pass gc safe point check, aborting: GC safepoint 2 exceed TS 1"}, proc.Result{ExitCode: 2}, policy.OutcomePermanent, "gc safe point"},
		"GC panic, from stderr only": {br.Report{Panic: "panic: cannot pass gc safe point check, aborting"}, proc.Result{ExitCode: 2}, policy.OutcomePermanent, "gc safe point"},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := br.Judge(tt.report, tt.res)
			if o.Class != tt.class || !strings.Contains(o.Reason, tt.reason) {
				t.Errorf("got %s %q, want %s with %q", o.Class, o.Reason, tt.class, tt.reason)
			}
		})
	}
}
