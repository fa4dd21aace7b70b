package br

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

const hidden = "<secret>"

// redactor hides secrets in text. It knows the names under which br takes them
// and, for an attempt, the very values.
type redactor struct {
	named  *regexp.Regexp // name=value, name: "value", in URLs, flags and JSON
	flag   *regexp.Regexp // --name value
	user   *regexp.Regexp // scheme://user:password@
	values *strings.Replacer
}

// secretNames are the parameters of br's storage URLs and flags that hold a
// secret; '-' stands for '_' as well, as br takes both.
const secretNames = `access[-_]?key(?:[-_]?id)?|secret[-_]?(?:access[-_]?)?key|session[-_]?token|security[-_]?token|` +
	`account[-_]?key|sas[-_]?token|encryption[-_]?key|crypter\.key|master[-_]?key|amz-credential|signature|sig|` +
	`passw(?:or)?d|client[-_]?secret|external[-_]?id`

func newRedactor() *redactor {
	return &redactor{
		named: regexp.MustCompile(`(?i)((?:^|[^a-z])[a-z0-9._-]*(?:` + secretNames + `)\\*["']?\s*[=:]\s*)` +
			`(\\*"[^"]*"|'[^']*'|[^\s&"'\\,;}\])]+)`),
		flag:   regexp.MustCompile(`(?i)(--[a-z0-9._-]*(?:` + secretNames + `)\s+)([^\s-]\S*)`),
		user:   regexp.MustCompile(`(://[^/\s:@?]*:)[^/\s@?]+@`),
		values: strings.NewReplacer(),
	}
}

// withValues returns a redactor that also hides these values, as they are and
// as they look in a URL.
func (r redactor) withValues(values []string) *redactor {
	const shortest = 4 // hiding shorter ones would hide ordinary text
	values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return len(v) < shortest })
	slices.SortFunc(values, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // the longest wins
	var pairs []string
	for _, v := range values {
		for _, form := range []string{v, url.QueryEscape(v), url.PathEscape(v)} {
			pairs = append(pairs, form, hidden)
		}
	}
	r.values = strings.NewReplacer(pairs...)
	return &r
}

func (r *redactor) redact(s string) string {
	s = r.values.Replace(s)
	s = r.user.ReplaceAllString(s, "${1}"+hidden+"@")
	s = r.named.ReplaceAllString(s, "${1}"+hidden)
	return r.flag.ReplaceAllString(s, "${1}"+hidden)
}

// hasSecret reports whether a URL names one of br's secret parameters.
func (r *redactor) hasSecret(rawURL string) bool {
	return r.named.MatchString(rawURL) || r.user.MatchString(rawURL)
}
