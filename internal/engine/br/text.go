package br

import (
	"bytes"
	"strings"
)

// bounded cuts s to maxText bytes and leaves no half of a rune.
func bounded(s string) string {
	if len(s) <= maxText {
		return s
	}
	const ellipsis = "…"
	return strings.ToValidUTF8(s[:maxText-len(ellipsis)], "") + ellipsis
}

// setFirst sets *s to text, bounded, unless it has a text already.
func setFirst(s *string, text string) {
	if *s == "" {
		*s = bounded(text)
	}
}

// between returns what stands between the first before and the next after, or
// "" when either is missing.
func between(s, before, after string) string {
	_, s, ok := strings.Cut(s, before)
	if !ok {
		return ""
	}
	s, _, ok = strings.Cut(s, after)
	if !ok {
		return ""
	}
	return s
}

func joinNonEmpty(sep string, parts ...string) string {
	var kept []string
	for _, part := range parts {
		if part != "" {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, sep)
}

func isCanceled(s string) bool { return strings.Contains(s, "context canceled") }

// stripANSI removes terminal control sequences: ESC [ … letter.
func stripANSI(line []byte) string {
	const escape = 0x1b
	if bytes.IndexByte(line, escape) < 0 {
		return string(bytes.TrimSpace(line))
	}
	out := make([]byte, 0, len(line))
	for i := 0; i < len(line); i++ {
		if line[i] != escape {
			out = append(out, line[i])
			continue
		}
		if i+1 < len(line) && line[i+1] == '[' {
			for i += 2; i < len(line) && (line[i] < '@' || line[i] > '~'); i++ {
			}
		}
	}
	return string(bytes.TrimSpace(out))
}
