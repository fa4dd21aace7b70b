package br_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/engine/br"
	"github.com/brctl/brctl/internal/proc"
	"github.com/brctl/brctl/pkg/policy"
)

// The files below testdata/v8.5 were written by a real br of the 8.5 line; paths
// and addresses were replaced, stack traces and the chatter of the TiDB inside
// br left out.
func TestWhatRealBrWroteIsUnderstood(t *testing.T) {
	const first, serviceID = policy.TS(470830696706605059), "br-68a237b3-2bc6-4f43-bc29-1a47eb817ddc"
	for name, tt := range map[string]struct {
		res       proc.Result
		class     policy.OutcomeClass
		ts        policy.TS
		service   string
		reason    string
		kinds     string // of the events of the log, in order
		ranges    uint64
		canResume bool
	}{
		"stopped": {proc.Result{ExitCode: 1, Stopped: true}, policy.OutcomeTransient, first, serviceID, "stopped by brctl",
			"backup_ts service_safe_point", 0, true},
		"resumed": {proc.Result{}, policy.OutcomeSuccess, first, serviceID, "",
			"backup_ts service_safe_point round", 137, false},
		"refused": {proc.Result{ExitCode: 1}, policy.OutcomeTargetInUse, 0, "", "backup meta file exists in",
			"", 0, false},
		"locked": {proc.Result{ExitCode: 1}, policy.OutcomeTransient, 470830704230137862, "br-0fe1c586-25f1-4f81-abcd-48f14c69a521",
			"The existing lock will expire in 294 seconds", "backup_ts service_safe_point", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			var kinds []string
			p := br.NewParser(func(e policy.AttemptEvent) { kinds = append(kinds, string(e.Kind)) })
			feed(t, p, br.FromLog, name+".log")
			if got := strings.Join(kinds, " "); got != tt.kinds {
				t.Errorf("events %q, want %q", got, tt.kinds)
			}
			feed(t, p, br.FromStderr, name+".out")
			o, canResume := br.Judge(p.Report(), tt.res)
			got := policy.Outcome{Class: o.Class, BackupTS: o.BackupTS, ServiceID: o.ServiceID}
			want := policy.Outcome{Class: tt.class, BackupTS: tt.ts, ServiceID: tt.service}
			if diff := cmp.Diff(want, got); diff != "" || canResume != tt.canResume || !strings.HasPrefix(o.Reason, tt.reason) {
				t.Errorf("(-want +got):\n%s; may resume %v; reason %q", diff, canResume, o.Reason)
			}
			if o.Summary != nil && o.Summary.Ranges != tt.ranges || o.Summary == nil && tt.ranges > 0 {
				t.Errorf("summary %+v", o.Summary)
			}
		})
	}
}

func feed(t *testing.T, p *br.Parser, src br.Source, name string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "v8.5", name))
	if err != nil {
		t.Fatal(err)
	}
	lines := proc.NewLineSplitter(0, func(line []byte) { p.Line(src, line) })
	_, _ = lines.Write(b)
	lines.Flush()
}
