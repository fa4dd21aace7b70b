package br

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/brctl/brctl/pkg/policy"
)

// Source says where a line was read.
type Source int

// The sources of lines.
const (
	FromStdout Source = iota
	FromStderr
	FromLog // br's own log file
)

// maxText bounds every text that is kept: reasons, messages, diagnostics.
const maxText = 2 << 10

// Report is what a Parser has learned from br's lines.
type Report struct {
	Summary          *policy.Summary // of success; the last one seen
	FailedSummary    bool
	BackupTS         policy.TS
	ServiceSafePoint string // id of the service safepoint that br holds in PD
	Progress         policy.Progress
	Round            int
	IncompleteRanges int

	PrintedError string // br's "Error: …" line, without that word
	FirstError   string // first error of the log that is not merely "context canceled"
	Canceled     bool   // some error was "context canceled"
	LastWarning  string // last thing br complained about while it went on
	Panic        string // first line of a Go panic
	Signal       string // signal that br says it got: "terminated", "hangup", …
}

// Parser turns br's lines into a Report and into events, in constant memory. It
// may be fed from several goroutines.
type Parser struct {
	mu        sync.Mutex
	emit      func(policy.AttemptEvent)
	report    Report
	inError   bool // stderr continues an "Error:" text
	seenBar   bool
	lastCause []byte // raw text of the last warning, to report repetition once
}

// NewParser returns a parser that calls emit, in order, for every event; emit
// must not block. A progress event means that the figures have changed: br
// repeats the same line while it hangs.
func NewParser(emit func(policy.AttemptEvent)) *Parser {
	if emit == nil {
		emit = func(policy.AttemptEvent) {}
	}
	return &Parser{emit: emit}
}

// Report returns what is known now.
func (p *Parser) Report() Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.report
}

// Line takes one line without its end. It does not keep the slice.
func (p *Parser) Line(src Source, line []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h, ok := parseHead(line); ok {
		p.inError = p.inError && src != FromStderr
		if h.wanted() && !p.repeated(h) {
			e := parseTokens(h.rest)
			e.level = string(h.level)
			p.entry(e)
		}
		return
	}
	if len(line) > 0 && line[0] == '{' {
		if e, ok := parseJSON(line); ok {
			p.entry(e)
			return
		}
	}
	p.raw(src, line)
}

// wanted reports whether a line may say something: everything above INFO, and
// the messages that entry knows.
func (h head) wanted() bool {
	if string(h.level) != "INFO" && string(h.level) != "DEBUG" {
		return true
	}
	switch string(bytes.Trim(h.message, `"`)) {
	case msgProgress, msgTimestamp, msgReuseTS, msgSafePoint, msgReuseID, msgKeepID, msgRound, msgRanges:
		return true
	}
	return isSummary(h.message)
}

// repeated reports whether h is the same warning as the last one, its time
// aside: br repeats some of them several times a second for hours.
func (p *Parser) repeated(h head) bool {
	if string(h.level) != "WARN" {
		return false
	}
	cause := h.rest[:min(len(h.rest), maxText)]
	if bytes.Equal(cause, p.lastCause) {
		return true
	}
	p.lastCause = append(p.lastCause[:0], cause...)
	return false
}

// Messages of br that carry facts.
const (
	msgProgress  = "progress"
	msgTimestamp = "backup encode timestamp"
	msgReuseTS   = "reuse checkpoint BackupTS"
	msgSafePoint = "current backup safePoint job"
	msgReuseID   = "reuse the checkpoint gc-safepoint service id"
	msgKeepID    = "skip removing gc-safepoint keeper for next retry"
	msgRound     = "This round of backup starts..."
	msgRanges    = "backup ranges"
	msgDDLSpace  = "ingest backfill may not be available"
	msgHoldLost  = "service GC safe point lost, we may fail to back up if GC lifetime isn't long enough"
)

func (p *Parser) entry(e entry) {
	switch e.message {
	case msgProgress:
		p.progress(policy.Progress{Step: e.get("step"), Ratio: ratio(e.get("progress"))}, e.get("count"))
	case msgTimestamp:
		p.backupTS(policy.TS(e.uint("BackupTS")))
	case msgReuseTS:
		p.backupTS(policy.TS(e.uint("backup-ts")))
	case msgSafePoint:
		p.safePoint(between(e.get("safePoint"), "ID=", ","))
	case msgReuseID:
		p.safePoint(e.get("service-id"))
	case msgKeepID:
		p.safePoint(e.get("gc-id"))
	case msgRound, msgRanges:
		p.round(e)
	default:
		if isSummary([]byte(e.message)) {
			p.summary(e)
			return
		}
		p.complaint(e)
	}
}

func (p *Parser) progress(now policy.Progress, count string) {
	done, total, _ := strings.Cut(count, " / ")
	now.Done, _ = strconv.ParseUint(done, 10, 64) // "?" and "" mean unknown: 0
	now.Total, _ = strconv.ParseUint(total, 10, 64)
	if now == p.report.Progress && p.seenBar {
		return
	}
	p.seenBar = true
	p.report.Progress = now
	p.emit(policy.AttemptEvent{Kind: policy.AttemptProgress, Progress: now})
}

func (p *Parser) backupTS(ts policy.TS) {
	if ts == 0 || ts == p.report.BackupTS {
		return
	}
	p.report.BackupTS = ts
	p.emit(policy.AttemptEvent{Kind: policy.AttemptBackupTS, BackupTS: ts})
}

func (p *Parser) safePoint(id string) {
	if id == "" || id == p.report.ServiceSafePoint {
		return
	}
	p.report.ServiceSafePoint = bounded(id)
	p.emit(policy.AttemptEvent{Kind: policy.AttemptSafePoint, ServiceSafePoint: p.report.ServiceSafePoint})
}

// round takes both lines of a round; the second also says how many ranges are
// still to do. A growing round with ranges that do not get fewer is a br that
// is stuck.
func (p *Parser) round(e entry) {
	p.report.Round = int(e.uint("round"))
	if e.message != msgRanges {
		return
	}
	p.report.IncompleteRanges = int(e.uint("incomplete-ranges"))
	p.emit(policy.AttemptEvent{Kind: policy.AttemptRound, Round: p.report.Round, IncompleteRanges: p.report.IncompleteRanges})
}

// complaint takes a line above INFO.
func (p *Parser) complaint(e entry) {
	if e.level == "INFO" || e.level == "DEBUG" || e.level == "" {
		return
	}
	cause := p.firstCause(e)
	if e.level == "WARN" {
		// br warns about much that is in order; a cause makes the difference. The
		// TiDB inside br also warns about DDL, which br does not do.
		if cause != "" && e.message != msgDDLSpace || e.message == msgHoldLost {
			p.warn(bounded(joinNonEmpty(": ", e.message, cause)))
		}
		return
	}
	if e.level == "PANIC" || e.level == "FATAL" {
		p.report.Panic = bounded(joinNonEmpty(": ", e.message, cause)) // the log says more than the stack
	}
	if cause == "" && e.get("error") == "" {
		cause = e.message
	}
	if cause != "" {
		setFirst(&p.report.FirstError, cause)
	}
}

func (p *Parser) warn(text string) {
	p.report.LastWarning = text
	p.emit(policy.AttemptEvent{Kind: policy.AttemptDiagnostic, Message: text})
}

// firstCause returns the first error field that is a cause: after one real
// error br cancels everything else, and reports that thousands of times.
func (p *Parser) firstCause(e entry) string {
	for _, f := range e.fields {
		if f.key != "error" {
			continue
		}
		if !isCanceled(f.value) {
			return f.value
		}
		p.report.Canceled = true
	}
	return ""
}

// raw takes a line that is not of the log.
func (p *Parser) raw(src Source, line []byte) {
	text := stripANSI(line)
	bar, isBar := parseBar(text)
	if isBar {
		p.progress(bar, "")
	}
	switch {
	case isSummary(line) && bytes.IndexByte(line, '[') >= 0:
		p.summary(parseTokens(line)) // old releases print it without a header
	case p.printedError(src, text, isBar):
	case strings.HasPrefix(text, "panic: "), strings.HasPrefix(text, "fatal error: "):
		setFirst(&p.report.Panic, text)
	case strings.Contains(text, "[ Got signal "):
		p.report.Signal = between(text, "[ Got signal ", " to exit")
	}
}

// printedError takes the line with which br ends when it fails, and the lines
// that continue it: some errors hold line ends. A progress bar may stand before
// it on the same line.
func (p *Parser) printedError(src Source, text string, afterBar bool) bool {
	const word = "Error: "
	at := strings.Index(text, word)
	if at == 0 || at > 0 && afterBar {
		p.inError = true
		p.report.PrintedError = bounded(text[at+len(word):])
		return true
	}
	if p.inError && src == FromStderr && len(p.report.PrintedError) < maxText {
		p.report.PrintedError = bounded(p.report.PrintedError + "\n" + text)
		return true
	}
	return false
}

// parseBar reads a progress bar: "Full Backup <----…> 16.88%".
func parseBar(text string) (policy.Progress, bool) {
	open, end := strings.IndexByte(text, '<'), strings.IndexByte(text, '%')
	if open <= 0 || end < open {
		return policy.Progress{}, false
	}
	start := strings.LastIndexByte(text[:end], '>')
	if start < 0 {
		return policy.Progress{}, false
	}
	r, ok := parsePercent(text[start+1 : end+1])
	return policy.Progress{Step: strings.TrimSpace(text[:open]), Ratio: r}, ok
}

// ratio reads "16.88%"; "?%", of a step without a total, is 0.
func ratio(percent string) float64 {
	r, _ := parsePercent(percent)
	return r
}

// parsePercent turns "16.88%" into 0.1688, to the four digits that br prints.
func parsePercent(s string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(s), "%"), 64)
	if err != nil || !(v >= 0 && v <= 100) {
		return 0, false
	}
	return math.Round(v*100) / 1e4, true
}
