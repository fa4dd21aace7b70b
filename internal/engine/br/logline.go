package br

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// entry is one line of br's log, in either of its formats.
type entry struct {
	level   string // INFO, WARN, ERROR, FATAL, …; "" when the line has no header
	message string
	fields  []field
}

type field struct{ key, value string }

// get returns the first field of that name.
func (e entry) get(key string) string {
	for _, f := range e.fields {
		if f.key == key {
			return f.value
		}
	}
	return ""
}

// uint returns the first field of that name as a number, 0 when it is none.
func (e entry) uint(key string) uint64 {
	v, err := strconv.ParseUint(e.get(key), 10, 64)
	if err != nil {
		return 0
	}
	return v
}

// head is the start of a text line, cut out without copying.
type head struct {
	level   []byte
	message []byte // as written, quotes and escapes included
	rest    []byte // from the message's '[' to the end of the line
}

// parseHead reads "[time] [LEVEL] [file.go:1] [message]…", the header of
// PingCAP's unified log format. It looks only at brackets and is cheap enough
// to run on every line of a log of gigabytes.
func parseHead(line []byte) (head, bool) {
	if len(line) < 8 || line[0] != '[' || line[5] != '/' {
		return head{}, false
	}
	_, rest, ok := plainToken(line)
	if !ok {
		return head{}, false
	}
	level, rest, ok := plainToken(rest)
	if !ok {
		return head{}, false
	}
	_, rest, ok = plainToken(rest) // the caller
	open := bytes.IndexByte(rest, '[')
	if !ok || open < 0 {
		return head{}, false
	}
	rest = rest[open:]
	end := tokenEnd(rest[1:])
	if end < 0 {
		return head{}, false
	}
	return head{level: level, message: rest[1 : 1+end], rest: rest}, true
}

// plainToken returns the text of an unquoted "[…] " at the start of b and what
// follows.
func plainToken(b []byte) (token, rest []byte, ok bool) {
	if len(b) == 0 || b[0] != '[' {
		return nil, nil, false
	}
	end := bytes.IndexByte(b, ']')
	if end < 0 {
		return nil, nil, false
	}
	return b[1:end], bytes.TrimLeft(b[end+1:], " "), true
}

// tokenEnd returns the length of the word at the start of b: a quoted string,
// or everything up to ']' or '='. It returns -1 when the word has no end.
func tokenEnd(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return bytes.IndexAny(b, "]=")
	}
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// parseTokens reads the bracketed words of a line from its message on:
// "[message] [key=value] …". What stands between brackets is skipped: some
// releases decorate the summary with "***". A cut line gives the fields that
// are whole.
func parseTokens(b []byte) entry {
	var e entry
	for seen := false; ; seen = true {
		open := bytes.IndexByte(b, '[')
		if open < 0 {
			return e
		}
		b = b[open+1:]
		end := tokenEnd(b)
		if end < 0 {
			return e
		}
		word := unquote(b[:end])
		b = b[end:]
		if len(b) == 0 || b[0] != '=' {
			if !seen {
				e.message = word
			}
			continue
		}
		b = b[1:]
		if end = valueEnd(b); end < 0 {
			return e
		}
		e.fields = append(e.fields, field{key: word, value: unquote(b[:end])})
		b = b[end:]
	}
}

// valueEnd is tokenEnd for a value, in which '=' is an ordinary byte.
func valueEnd(b []byte) int {
	if len(b) > 0 && b[0] == '"' {
		return tokenEnd(b)
	}
	return bytes.IndexByte(b, ']')
}

// unquote takes the quotes and escapes of the log format off a word. The
// escapes are those of JSON; a word that is not well formed is returned as it
// is, without its quotes.
func unquote(b []byte) string {
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return string(b)
	}
	if bytes.IndexByte(b, '\\') < 0 {
		return string(b[1 : len(b)-1])
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return string(b[1 : len(b)-1])
	}
	return s
}

// parseJSON reads a line of --log-format=json.
func parseJSON(line []byte) (entry, bool) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber() // a TS does not fit a float64
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		return entry{}, false
	}
	var e entry
	for key, value := range m {
		text := fmt.Sprint(value)
		switch key {
		case "level":
			e.level = strings.ToUpper(text)
		case "message":
			e.message = text
		case "time", "caller", "stack":
		default:
			e.fields = append(e.fields, field{key: key, value: text})
		}
	}
	return e, e.message != ""
}
