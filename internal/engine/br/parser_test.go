package br_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/engine/br"
	"github.com/brctl/brctl/pkg/policy"
)

// report parses lines of one source.
func report(src br.Source, lines ...string) br.Report {
	p := br.NewParser(nil)
	for _, line := range lines {
		p.Line(src, []byte(line))
	}
	return p.Report()
}

const header = `[2026/11/30 20:34:15.999 +00:00] [INFO] [collector.go:77] `

// summaries are the shapes of case 6, from v4 to v8.
func summaries() map[string]struct {
	line string
	want policy.Summary
} {
	return map[string]struct {
		line string
		want policy.Summary
	}{
		"v4": {
			`["Full backup Success summary: total backup ranges: 4, total success: 4, total failed: 0, total take(s): 0.14, total kv: 30558, total size(MB): 2.64, avg speed(MB/s): 18.42"] ["backup checksum"=15.354838ms] [BackupTS=419521181966401538] [Size=250643]`,
			policy.Summary{BackupTS: 419521181966401538, Ranges: 4, TotalKV: 30558, SizeBytes: 250643, Took: 140 * time.Millisecond},
		},
		"v5 to v7": {
			`["Full Backup success summary"] [total-ranges=51] [ranges-succeed=51] [ranges-failed=0] [backup-checksum=108.906786ms] [backup-total-ranges=131] [total-take=6.233719911s] [backup-data-size(after-compressed)=495.1kB] [Size=495106] [BackupTS=444550861855391746]`,
			policy.Summary{BackupTS: 444550861855391746, Ranges: 51, SizeBytes: 495106, Took: 6233719911},
		},
		"decorated": {
			`*** ["Full Backup success summary"] *** [total-ranges=20] [ranges-failed=0] [total-take=4.715509333s] [BackupTS=435844546560000000] [total-kv=9] [Size=71330]`,
			policy.Summary{BackupTS: 435844546560000000, Ranges: 20, SizeBytes: 71330, TotalKV: 9, Took: 4715509333},
		},
		"nothing to back up": {
			`["Full Backup success summary"] [total-ranges=0] [ranges-succeed=0] [ranges-failed=0] [Result="Nothing to bakcup"]`,
			policy.Summary{Empty: true},
		},
		"database": {
			`["Database backup success summary"] [total-ranges=0] [ranges-succeed=0] [ranges-failed=0] [total-take=27.584125ms] [BackupTS=427170082246885378]`,
			policy.Summary{BackupTS: 427170082246885378, Took: 27584125, Empty: true},
		},
		"v8.5 of the lab": {
			`["Full Backup success summary"] [total-ranges=132] [ranges-succeed=132] [ranges-failed=0] [backup-checksum=40.408244ms] [backup-total-regions=132] [backup-total-ranges=132] [total-take=1h5m30.884475391s] [BackupTS=470829197526302723] [total-kv=132] [total-kv-size=132B] [average-speed=35.23B/s] [backup-data-size(after-compressed)=132kB] [Size=132000]`,
			policy.Summary{BackupTS: 470829197526302723, Ranges: 132, TotalKV: 132, SizeBytes: 132000, Took: time.Hour + 5*time.Minute + 30884475391},
		},
	}
}

func TestEveryShapeOfTheSuccessLineIsRead(t *testing.T) {
	for name, tt := range summaries() {
		for variant, line := range map[string]string{"bare": tt.line, "with header": header + tt.line} {
			t.Run(name+"/"+variant, func(t *testing.T) {
				got := report(br.FromStdout, line, line) // once in the log, once on stdout: one success
				if got.Summary == nil {
					t.Fatal("no summary found")
				}
				if diff := cmp.Diff(tt.want, *got.Summary); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if got.BackupTS != tt.want.BackupTS || got.FailedSummary {
					t.Errorf("report %+v", got)
				}
			})
		}
	}
}

func TestTheOrderOfFieldsInTheSummaryMeansNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, tt := range summaries() {
		message, rest, _ := strings.Cut(tt.line, "] ")
		fields := strings.SplitAfter(strings.TrimPrefix(rest, "*** "), "] ")
		for range 20 {
			r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
			got := report(br.FromLog, header+message+"] "+strings.Join(fields, " "))
			if got.Summary == nil || *got.Summary != tt.want {
				t.Fatalf("%s: %v\n got %+v\nwant %+v", name, fields, got.Summary, tt.want)
			}
		}
	}
}

func TestAFailedSummaryIsNotASuccess(t *testing.T) {
	for _, line := range []string{
		header + `["Full Backup failed summary"] [total-ranges=0] [ranges-succeed=0] [ranges-failed=0]`,
		`["Database backup failed summary"] [total-ranges=0]`,
		header + `["no success at all"] [x="success summary"]`,
		`Error: there was no success summary`,
	} {
		if got := report(br.FromStdout, line); got.Summary != nil {
			t.Errorf("%s counts as success", line)
		}
	}
}

// Case 4: the first error of the line says only that the rest was canceled.
func TestTheFirstErrorIsTheFirstThatExplainsSomething(t *testing.T) {
	canceled := `[unit-name="range start:? end:?"] [error="rpc error: code = Canceled desc = context canceled"] [errorVerbose="…stack…"] `
	line := `[2021/08/10 10:00:00.000 +00:00] [INFO] [collector.go:66] ["Full backup failed summary"] [total-ranges=8533] ` +
		strings.Repeat(canceled, 3) + `[error="msg:\"AccessDenied\""] ` + canceled
	got := report(br.FromLog, line)
	if got.FirstError != `msg:"AccessDenied"` || !got.Canceled || !got.FailedSummary {
		t.Errorf("report %+v", got)
	}
	got = report(br.FromLog, strings.Replace(line, "AccessDenied", "context canceled", 1))
	if got.FirstError != "" || !got.Canceled {
		t.Errorf("nothing but canceled: %+v", got)
	}
}

func TestTheFactsOfTheLogBecomeEvents(t *testing.T) {
	var got []policy.AttemptEvent
	p := br.NewParser(func(e policy.AttemptEvent) { got = append(got, e) })
	for line := range strings.SplitSeq(strings.TrimSpace(`
[2026/11/30 20:34:10.000 +00:00] [INFO] [client.go:449] ["backup encode timestamp"] [BackupTS=470829050302038021]
[2026/11/30 20:34:10.000 +00:00] [INFO] [backup.go:494] ["current backup safePoint job"] [safePoint="{ID=br-2a7f0000-0000-4000-8000-000000000001,TTL=1h12m0s,BackupTime=\"2026-11-30 20:34:10.0 +0000 UTC\",BackupTS=470829050302038021}"]
[2026/11/30 20:34:10.000 +00:00] [INFO] [client.go:186] ["This round of backup starts..."] [round=3]
[2026/11/30 20:34:10.000 +00:00] [INFO] [client.go:220] ["backup ranges"] [round=3] [incomplete-ranges=132]
[2026/11/30 20:36:10.000 +00:00] [INFO] [progress.go:176] [progress] [step="Full Backup"] [progress=16.25%] [count="26 / 160"] [speed="? p/s"] [elapsed=2m0s] [remaining=?]
[2026/11/30 20:36:11.000 +00:00] [INFO] [progress.go:176] [progress] [step=Checksum] [progress=?%] [count=0] [speed="? p/s"] [elapsed=0s] [remaining=?]
[2026/11/30 20:36:12.000 +00:00] [INFO] [backup.go:497] ["skip removing gc-safepoint keeper for next retry"] [gc-id=br-00000000-0000-4000-8000-000000000001]
`), "\n") {
		p.Line(br.FromLog, []byte(line))
	}
	want := []policy.AttemptEvent{
		{Kind: policy.AttemptBackupTS, BackupTS: 470829050302038021},
		{Kind: policy.AttemptSafePoint, ServiceSafePoint: "br-2a7f0000-0000-4000-8000-000000000001"},
		{Kind: policy.AttemptRound, Round: 3, IncompleteRanges: 132},
		{Kind: policy.AttemptProgress, Progress: policy.Progress{Step: "Full Backup", Ratio: 0.1625, Done: 26, Total: 160}},
		{Kind: policy.AttemptProgress, Progress: policy.Progress{Step: "Checksum"}},
		{Kind: policy.AttemptSafePoint, ServiceSafePoint: "br-00000000-0000-4000-8000-000000000001"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Case 8: a br that hangs repeats its line. Only new figures are progress.
func TestARepeatedProgressLineIsNoProgress(t *testing.T) {
	var got []uint64
	p := br.NewParser(func(e policy.AttemptEvent) { got = append(got, e.Progress.Done) })
	for _, count := range []string{"4041", "4041", "4041", "4042", "4042"} {
		p.Line(br.FromLog, []byte(`[2026/11/30 20:36:10.000 +00:00] [INFO] [progress.go:176] [progress] [step="Full Backup"] [progress=47.36%] [count="`+
			count+` / 8533"] [speed="? p/s"] [elapsed=1h47m0s] [remaining=?]`))
	}
	if diff := cmp.Diff([]uint64{4041, 4042}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheBarOfATerminalIsProgress(t *testing.T) {
	for line, want := range map[string]policy.Progress{
		"Full Backup <----................> 16.88%":                             {Step: "Full Backup", Ratio: 0.1688},
		"\x1b[32mFull Backup\x1b[0m <--/......> 0.47%":                          {Step: "Full Backup", Ratio: 0.0047},
		"\x1b[?25l\x1b[32mChecksum\x1b[0m <-------------------> 100.00%\x1b[0m": {Step: "Checksum", Ratio: 1},
	} {
		if got := report(br.FromStdout, line).Progress; got != want {
			t.Errorf("%q: %+v, want %+v", line, got, want)
		}
	}
	for _, line := range []string{"a <b> c", "<x> 5%", "5%", "Full <--", "Full <-> 500%", "Full <-> x%"} {
		if got := report(br.FromStdout, line).Progress; got != (policy.Progress{}) {
			t.Errorf("%q: %+v, want nothing", line, got)
		}
	}
}

// Case 9: what br retries is known while it does.
func TestAWarningIsReportedOnceWhileItRepeats(t *testing.T) {
	line := `[2021/12/31 10:00:00.000 +00:00] [WARN] [s3.go:767] ["failed to request s3, retrying"] [error="RequestError: send request failed\ncaused by: Head \"http://bucket-a.192.0.2.9:9000/\": dial tcp: lookup bucket-a.192.0.2.9: no such host"] [backoff=2m4.997377216s]`
	var got []string
	p := br.NewParser(func(e policy.AttemptEvent) { got = append(got, e.Message) })
	for range 3 {
		p.Line(br.FromLog, []byte(line))
	}
	if len(got) != 1 || !strings.Contains(got[0], "no such host") || !strings.Contains(got[0], "http://bucket-a.192.0.2.9:9000/") {
		t.Errorf("events %q", got)
	}
	if last := p.Report().LastWarning; last != got[0] {
		t.Errorf("last warning %q", last)
	}
}

func TestJSONLogsSayTheSame(t *testing.T) {
	got := report(br.FromLog,
		`{"level":"INFO","time":"2026/11/30 20:34:15.999 +00:00","caller":"x.go:1","message":"backup encode timestamp","BackupTS":470829050302038021}`,
		`{"level":"INFO","message":"progress","step":"Full Backup","progress":"50.00%","count":"1 / 2"}`,
		`{"level":"ERROR","message":"failed to backup","error":"boom"}`,
		`{"level":"INFO","message":"Full Backup success summary","total-ranges":2,"ranges-failed":0,"total-take":1500000000,"Size":7}`,
		`{"not json`)
	if got.BackupTS != 470829050302038021 || got.FirstError != "boom" || got.Progress.Done != 1 {
		t.Errorf("report %+v", got)
	}
	if got.Summary == nil || got.Summary.Ranges != 2 || got.Summary.SizeBytes != 7 {
		t.Errorf("summary %+v", got.Summary)
	}
}

func TestAnErrorOfSeveralLinesIsKeptWholeAndBounded(t *testing.T) {
	got := report(br.FromStderr, "Error: RequestError: send request failed", "caused by: dial tcp: no such host")
	if got.PrintedError != "RequestError: send request failed\ncaused by: dial tcp: no such host" {
		t.Errorf("%q", got.PrintedError)
	}
	got = report(br.FromStderr, "Error: "+strings.Repeat("é", 5000), strings.Repeat("x", 5000))
	if len(got.PrintedError) > 2048 {
		t.Errorf("%d bytes are kept", len(got.PrintedError))
	}
}

func FuzzTheParserTakesAnyLine(f *testing.F) {
	for _, tt := range summaries() {
		f.Add(header + tt.line)
	}
	f.Add(`[2021/08/10 10:00:00.000 +00:00] [WARN] [a.go:1] ["x\"y"] [error="a\\"] ["b c"=1] [d=`)
	f.Add("Full Backup <--> 1%Error: x")
	f.Add(`{"message":"progress","count":{}}`)
	f.Add("[2021/")
	f.Fuzz(func(t *testing.T, line string) {
		p := br.NewParser(func(e policy.AttemptEvent) {
			if len(e.Message) > 2048 || e.Progress.Ratio < 0 || e.Progress.Ratio > 1 {
				t.Errorf("event %+v", e)
			}
		})
		for _, src := range []br.Source{br.FromStdout, br.FromStderr, br.FromLog} {
			p.Line(src, []byte(line))
		}
		r := p.Report()
		for _, s := range []string{r.PrintedError, r.FirstError, r.LastWarning, r.Panic, r.ServiceSafePoint} {
			if len(s) > 2048 {
				t.Errorf("%d bytes are kept of one text", len(s))
			}
		}
	})
}
