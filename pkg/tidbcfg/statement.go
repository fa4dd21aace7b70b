package tidbcfg

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/brctl/brctl/pkg/policy"
)

// The parts of a statement. Everything that goes into SQL text matches one of
// these or validateHostPort, so that no quoting rule is needed: none of them
// can hold a quote, a back-quote, a backslash or a space.
var (
	// settablePattern is the namespace brctl may write to: TiKV's [backup].
	settablePattern = regexp.MustCompile(`^backup\.[a-z0-9]+(-[a-z0-9]+)*$`)
	// readablePattern is any configuration item of TiKV.
	readablePattern = regexp.MustCompile(`^[a-z0-9]+([.-][a-z0-9]+)*$`)
	integerPattern  = regexp.MustCompile(`^[0-9]{1,18}$`)
	wordPattern     = regexp.MustCompile(`^[A-Za-z0-9.]{1,64}$`)
)

// Statement returns the SET CONFIG that Apply sends for s, for people to read
// in a plan as well. The instance is the store's gRPC address as SHOW CONFIG
// prints it: TiDB knows no instance by its status address. The item is
// back-quoted because it contains "-". An integer goes bare, because TiDB
// sends a quoted one to TiKV as a JSON string, which TiKV refuses.
func Statement(s policy.Setting) (string, error) {
	if err := validateHostPort(s.Instance); err != nil {
		return "", fmt.Errorf("instance %q: %w", s.Instance, err)
	}
	if !settablePattern.MatchString(s.Name) {
		return "", fmt.Errorf("item %q: not one that brctl may set (want backup.…)", s.Name)
	}
	value, err := literal(s.Want)
	if err != nil {
		return "", fmt.Errorf("value of %s: %w", s.Name, err)
	}
	return fmt.Sprintf("SET CONFIG '%s' `%s` = %s", s.Instance, s.Name, value), nil
}

func literal(value string) (string, error) {
	switch {
	case integerPattern.MatchString(value), value == "true", value == "false":
		return value, nil
	case wordPattern.MatchString(value):
		return "'" + value + "'", nil
	}
	return "", fmt.Errorf("%q is not a number, a duration or a size", value)
}

// configQuery reads items, each matching readablePattern, of one TiKV. TiDB takes the predicates on type and
// instance as the list of nodes to ask, so that no other node is bothered; the
// one on key filters afterwards. SHOW CONFIG would ask every node of the
// cluster for everything.
//
// TiDB compares instances exactly here, but in lower case in SET CONFIG, so
// both spellings are asked for.
func configQuery(instance string, items []string) (string, error) {
	if err := validateHostPort(instance); err != nil {
		return "", fmt.Errorf("instance %q: %w", instance, err)
	}
	instances := []string{instance}
	if lower := strings.ToLower(instance); lower != instance {
		instances = append(instances, lower)
	}
	return "SELECT `KEY`, `VALUE` FROM information_schema.cluster_config WHERE `TYPE` = 'tikv'" +
		" AND `INSTANCE` IN (" + quoteAll(instances) + ") AND `KEY` IN (" + quoteAll(items) + ")", nil
}

// quoteAll makes a list of SQL strings of validated words.
func quoteAll(words []string) string { return "'" + strings.Join(words, "', '") + "'" }
