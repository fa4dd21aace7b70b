package br

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// isSummary reports whether a message is the summary of a run. Releases differ
// in its capitals and in what stands around it.
func isSummary(message []byte) bool {
	at := bytes.Index(message, []byte("summary"))
	if at < 0 {
		return false
	}
	before := bytes.ToLower(bytes.TrimRight(message[max(0, at-len("success ")):at], " "))
	return bytes.HasSuffix(before, []byte("success")) || bytes.HasSuffix(before, []byte("failed"))
}

// summary takes the line with which br says how it went. It stands in the log
// and on standard output; both say the same, so the later one counts.
func (p *Parser) summary(e entry) {
	if !strings.Contains(strings.ToLower(e.message), "success summary") {
		p.report.FailedSummary = true
		if cause := p.firstCause(e); cause != "" {
			setFirst(&p.report.FirstError, cause)
		}
		return
	}
	s := parseSummary(e)
	p.report.Summary = &s
	p.backupTS(s.BackupTS)
}

// parseSummary reads the fields by name, wherever they stand: their order is
// that of a Go map. br 4.x writes most of them into the message itself.
func parseSummary(e entry) policy.Summary {
	if _, list, ok := strings.Cut(e.message, "summary: "); ok {
		for item := range strings.SplitSeq(list, ", ") {
			if key, value, ok := strings.Cut(item, ": "); ok {
				e.fields = append(e.fields, field{key: key, value: value})
			}
		}
	}
	s := policy.Summary{
		BackupTS:     policy.TS(e.uint("BackupTS")),
		Ranges:       max(e.uint("total-ranges"), e.uint("total backup ranges")),
		RangesFailed: max(e.uint("ranges-failed"), e.uint("total failed")),
		SizeBytes:    e.uint("Size"),
		TotalKV:      max(e.uint("total-kv"), e.uint("total kv")),
	}
	if d, err := time.ParseDuration(e.get("total-take")); err == nil {
		s.Took = d
	} else if sec, err := strconv.ParseFloat(e.get("total take(s)"), 64); err == nil {
		s.Took = time.Duration(sec * float64(time.Second))
	}
	// The field Result is misspelt in br ("Nothing to bakcup"), so the figures
	// are what counts: no range and no file.
	s.Empty = s.Ranges == 0 && s.SizeBytes == 0
	return s
}
