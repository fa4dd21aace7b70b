package proc

import (
	"os"
	"slices"
	"strings"
)

// CleanEnv returns the variables of our own environment that are named in keep,
// as NAME=value, sorted. A child gets nothing that was not named: a variable
// that happens to be set where the daemon was started must not change what a
// backup does.
func CleanEnv(keep []string) []string {
	var env []string
	for _, name := range keep {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	slices.Sort(env)
	return slices.Compact(env)
}

// Quote renders argv as one line that a shell would read back as the same
// words, for people.
func Quote(argv []string) string {
	words := make([]string, len(argv))
	for i, arg := range argv {
		words[i] = quoteWord(arg)
	}
	return strings.Join(words, " ")
}

func quoteWord(w string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,@%+"
	if w != "" && strings.Trim(w, plain) == "" {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
