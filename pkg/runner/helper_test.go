package runner_test

import (
	"slices"
	"strings"
)

// contains reports whether one of texts contains part.
func contains(texts []string, part string) bool {
	return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, part) })
}
