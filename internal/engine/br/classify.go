package br

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/brctl/brctl/internal/proc"
	"github.com/brctl/brctl/pkg/policy"
)

// Exit statuses of br: 0 and 1 are its own, 2 is a Go panic.
const exitPanic = 2

// classifier judges how an attempt ended.
type classifier struct {
	rules    []rule
	code     *regexp.Regexp // [BR:Common:ErrVersionMismatch]
	lock     *regexp.Regexp
	gcPair   *regexp.Regexp
	store    *regexp.Regexp
	errno    *regexp.Regexp
	s3Code   *regexp.Regexp
	escapes  *regexp.Regexp
	fromTiKV *regexp.Regexp
}

func newClassifier() *classifier {
	return &classifier{
		rules:    rules(),
		code:     regexp.MustCompile(`\[(BR:[A-Za-z]+:[A-Za-z]+)\]`),
		lock:     regexp.MustCompile(`existing lock will expire in (\d{1,6}) seconds`),
		gcPair:   regexp.MustCompile(`GC safepoint (\d+) exceed TS (\d+)`),
		store:    regexp.MustCompile(`store (\d+)(?: at ([^\s:]+:\d+))?`),
		errno:    regexp.MustCompile(`(?i)code: (\d{1,3})\b`),
		s3Code:   regexp.MustCompile(`(?:<Code>|code: Some\(")([A-Za-z]+)`),
		escapes:  regexp.MustCompile(`\\+(")`),
		fromTiKV: regexp.MustCompile(`(?i)put object|happen in store|Io\(`),
	}
}

// outcome combines what br said with how its process ended. Resumable is left
// for the caller, who can look at the target; canResume says whether a
// checkpoint found there may be continued.
func (c *classifier) outcome(r Report, res proc.Result) (o policy.Outcome, canResume bool) {
	o = policy.Outcome{
		ExitCode: res.ExitCode, Signal: res.Signal, Summary: r.Summary, BackupTS: r.BackupTS, ServiceID: r.ServiceSafePoint,
		Stopped: res.Stopped, EscapedChild: len(res.Escaped) > 0,
	}
	if res.ExitCode == 0 {
		c.judgeZero(&o, r)
		return o, o.Class != policy.OutcomeSuccess
	}
	text := realError(r)
	rule := c.apply(&o, text)
	switch {
	case res.Hung():
		o.Class, o.Hint = policy.OutcomeKilled, "bring the mount back or restart this host; until then br may hold files and its lock there"
		o.Reason = joinNonEmpty("; last words: ", hangs(res), text)
		rule.noResume = true // not beside a br that may wake up
	case res.SignalNo != 0:
		o.Class = policy.OutcomeKilled
		o.Reason = joinNonEmpty("; last words: ", killedBy(res), text)
	case res.ExitCode == exitPanic && o.Class != policy.OutcomePermanent:
		o.Class, o.Reason = policy.OutcomeTool, joinNonEmpty(": ", "br panicked", r.Panic)
	case text == "" && (r.Canceled || onlyCanceled(r.PrintedError) || res.Stopped || r.Signal != ""):
		o.Class, o.Reason = policy.OutcomeTransient, interrupted(r, res)
	case text == "":
		o.Class, o.Reason = policy.OutcomeTool, fmt.Sprintf("br ended with %d and said no reason", res.ExitCode)
	}
	o.Reason = bounded(o.Reason)
	return o, !rule.noResume
}

// judgeZero decides about exit status 0, which br has also given without a
// backup: only together with a success summary does it mean anything, and the
// artifact is still to be confirmed.
func (c *classifier) judgeZero(o *policy.Outcome, r Report) {
	switch {
	case r.Summary == nil:
		o.Class = policy.OutcomeTool
		o.Reason = bounded(joinNonEmpty(": ", "br ended with 0 without a success summary", realError(r)))
	case r.Summary.RangesFailed > 0:
		o.Class = policy.OutcomeTool
		o.Reason = fmt.Sprintf("br's success summary counts %d failed ranges", r.Summary.RangesFailed)
	default:
		o.Class = policy.OutcomeSuccess
	}
}

// realError picks the error that explains the end: what br printed, else the
// first of the log; a panic before both. "context canceled" explains nothing
// and is left out.
func realError(r Report) string {
	if strings.Contains(r.Panic, "gc safe point") {
		return r.Panic
	}
	if r.PrintedError != "" && !onlyCanceled(r.PrintedError) {
		return r.PrintedError
	}
	if r.FirstError != "" {
		return r.FirstError
	}
	return r.Panic
}

// onlyCanceled reports whether s says nothing but that br was interrupted. A
// text that carries a code of br has a cause of its own.
func onlyCanceled(s string) bool { return isCanceled(s) && !strings.Contains(s, "[BR:") }

func killedBy(res proc.Result) string {
	text := fmt.Sprintf("killed by signal %d", res.SignalNo)
	switch {
	case res.Killed:
		return text + ", sent by brctl after the grace time"
	case res.SignalNo == 9 && !res.Stopped:
		return text + " (OOM?)"
	}
	return text
}

func hangs(res proc.Result) string {
	return fmt.Sprintf("br (pid %d) does not end although it was killed: it waits in the kernel, e.g. for a dead mount", res.PID)
}

func interrupted(r Report, res proc.Result) string {
	who := "br was interrupted by somebody else"
	if res.Stopped {
		who = "stopped by brctl"
	}
	if r.Signal != "" && !res.Stopped {
		who += ", signal " + r.Signal
	}
	return joinNonEmpty("; last warning: ", who, r.LastWarning)
}

// apply finds the rule for text and fills the outcome from both. An unknown
// text is transient: the number of attempts is limited elsewhere, and most of
// br's errors pass.
func (c *classifier) apply(o *policy.Outcome, text string) rule {
	o.Class, o.Reason = policy.OutcomeTransient, text
	if m := c.code.FindAllStringSubmatch(text, -1); m != nil {
		o.Code = m[len(m)-1][1] // the outermost annotation stands last
	}
	plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(text)
	plain = c.escapes.ReplaceAllString(plain, "$1")
	lower := strings.ToLower(plain)
	for _, r := range c.rules {
		if r.matches(lower) {
			o.Class, o.ReduceRate, o.RetryAfter = r.class, r.reduceRate, r.retryAfter
			o.Hint = bounded(joinNonEmpty("; ", r.hint, c.details(plain)))
			c.lockWait(o, plain)
			return r
		}
	}
	o.Hint = bounded(c.details(plain))
	return rule{}
}

// lockWait reads how long the lock of a killed br lives. A second is added: the
// lock must have expired, not be about to.
func (c *classifier) lockWait(o *policy.Outcome, text string) {
	m := c.lock.FindStringSubmatch(text)
	if m == nil {
		return
	}
	if n, err := strconv.Atoi(m[1]); err == nil {
		o.RetryAfter = time.Duration(n+1) * time.Second
	}
}

// details names what a person needs to find the place: the store, the system's
// error, the storage's code, the distance of two timestamps.
func (c *classifier) details(text string) string {
	var parts []string
	if m := c.s3Code.FindStringSubmatch(text); m != nil {
		from := "storage code " + m[1]
		if c.fromTiKV.MatchString(text) {
			from += ", met by TiKV: check what TiKV uses (--send-credentials-to-tikv)"
		}
		parts = append(parts, from)
	}
	if m := c.store.FindStringSubmatch(text); m != nil {
		parts = append(parts, strings.TrimSuffix("store "+m[1]+" at "+m[2], " at "))
	}
	if c.fromTiKV.MatchString(text) || strings.Contains(text, "Code: ") {
		if m := c.errno.FindStringSubmatch(text); m != nil {
			parts = append(parts, errnoHint(m[1]))
		}
	}
	if m := c.gcPair.FindStringSubmatch(text); m != nil {
		parts = append(parts, gcDistance(m[1], m[2]))
	}
	return strings.Join(parts, "; ")
}

// errnoHint explains the system errors that a TiKV meets when it writes a
// backup (Linux numbers).
func errnoHint(errno string) string {
	const owner = "; files are written by TiKV's own user on every TiKV host, running br as root does not help"
	switch errno {
	case "2":
		return "errno 2, no such file or directory: is the target mounted on this TiKV's host?" + owner
	case "13":
		return "errno 13, permission denied: the directory must be writable with the same uid everywhere" + owner
	case "22":
		return "errno 22, invalid argument: the file system does not take TiKV's way of writing (seen with samba)"
	case "28":
		return "errno 28, no space left on the target"
	case "30":
		return "errno 30, the target is mounted read-only"
	case "122":
		return "errno 122, the quota of the target is used up"
	}
	return "errno " + errno
}

// gcDistance says how far GC had passed the backup.
func gcDistance(safePoint, backupTS string) string {
	gc, err1 := policy.ParseTS(safePoint)
	ts, err2 := policy.ParseTS(backupTS)
	if err1 != nil || err2 != nil {
		return ""
	}
	ahead := time.Duration(gc.Physical()-ts.Physical()) * time.Millisecond
	return fmt.Sprintf("GC safepoint is %v ahead of the backup", ahead.Round(100*time.Millisecond))
}
