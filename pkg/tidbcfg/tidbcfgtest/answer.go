package tidbcfgtest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

type sqlError struct {
	code    uint16
	state   string
	message string
}

func (e *sqlError) Error() string {
	return fmt.Sprintf("Error %d (%s): %s", e.code, e.state, e.message)
}

func accessDenied(user string) *sqlError {
	return &sqlError{1045, "28000", fmt.Sprintf("Access denied for user '%s'@'%%' (using password: YES)", user)}
}

// answer is the reply to one statement: an error, OK (no columns) or rows.
type answer struct {
	err     *sqlError
	columns []string
	rows    [][]string
	drop    bool // close the connection without a word
}

func failure(format string, args ...any) answer {
	return answer{err: &sqlError{1105, "HY000", fmt.Sprintf(format, args...)}}
}

var (
	setConfig   = regexp.MustCompile("^SET CONFIG '([^']*)' `([^`]*)` = (.+)$")
	fromTable   = regexp.MustCompile(`(?i)FROM (information_schema\.\w+)`)
	typeTiKV    = regexp.MustCompile("(?i)`TYPE` = 'tikv'")
	instanceIs  = regexp.MustCompile("(?i)`INSTANCE` (?:= |IN \\()((?:'[^']*'(?:, )?)+)")
	keyIn       = regexp.MustCompile("(?i)`KEY` IN \\(((?:'[^']*'(?:, )?)+)\\)")
	quoted      = regexp.MustCompile(`'([^']*)'`)
	showWarning = "SHOW WARNINGS"
)

func (s *Server) answer(ctx context.Context, c *client, sql string) answer {
	if strings.EqualFold(sql, showWarning) {
		a := answer{columns: []string{"Level", "Code", "Message"}}
		for _, w := range c.warnings {
			a.rows = append(a.rows, []string{"Warning", "1105", w})
		}
		return a
	}
	c.warnings = nil
	if m := setConfig.FindStringSubmatch(sql); m != nil {
		return s.setConfig(ctx, c, m[1], m[2], m[3])
	}
	switch sql {
	case "SELECT CURRENT_USER()":
		return answer{columns: []string{"CURRENT_USER()"}, rows: [][]string{{c.user + "@%"}}}
	}
	if m := fromTable.FindStringSubmatch(sql); m != nil {
		return s.selectFrom(ctx, c, strings.ToLower(m[1]), sql)
	}
	return answer{err: &sqlError{1064, "42000", "the fake TiDB does not know this statement: " + sql}}
}

func (s *Server) selectFrom(ctx context.Context, c *client, table, sql string) answer {
	switch table {
	case "information_schema.cluster_config":
		return s.clusterConfig(ctx, c, sql)
	case "information_schema.cluster_hardware":
		return s.clusterHardware(c)
	case "information_schema.cluster_info":
		return s.clusterInfo(sql)
	case "information_schema.tables":
		s.mu.Lock()
		defer s.mu.Unlock()
		return answer{columns: []string{"COUNT(*)"}, rows: [][]string{{strconv.Itoa(s.tables)}}}
	}
	return answer{err: &sqlError{1146, "42S02", "Table '" + table + "' doesn't exist"}}
}

// lacks answers TiDB's refusal when a privilege is revoked.
func (s *Server) lacks(privilege string) (answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	message := fmt.Sprintf("Access denied; you need (at least one of) the %s privilege(s) for this operation", privilege)
	return answer{err: &sqlError{1227, "42000", message}}, s.revoked[privilege]
}

// setConfig is TiDB's executor: an error before anything is sent, warnings for
// what the node said.
func (s *Server) setConfig(ctx context.Context, c *client, instance, item, literal string) answer {
	if a, lacks := s.lacks("CONFIG"); lacks {
		return a
	}
	t := s.find(strings.ToLower(instance))
	if t == nil {
		return failure("instance %s is not found in this cluster", strings.ToLower(instance))
	}
	warning, fate := s.post(t, item, literal)
	switch fate {
	case hangs:
		<-ctx.Done()
		return answer{drop: true}
	case drops:
		return answer{drop: true}
	case killed:
		return answer{err: &sqlError{1317, "70100", "Query execution was interrupted"}}
	case answers:
	}
	if warning != "" {
		c.warnings = append(c.warnings, warning)
	}
	return answer{}
}

func (s *Server) clusterConfig(ctx context.Context, c *client, sql string) answer {
	if a, lacks := s.lacks("CONFIG"); lacks {
		return a
	}
	a := answer{columns: []string{"KEY", "VALUE"}}
	for _, t := range s.matching(sql) {
		items, warning, fate := s.get(t)
		if fate == hangs {
			<-ctx.Done()
			return answer{drop: true}
		}
		if warning != "" {
			c.warnings = append(c.warnings, warning)
		}
		wanted := list(keyIn, sql)
		for key, value := range items {
			if slices.Contains(wanted, key) {
				a.rows = append(a.rows, []string{key, value})
			}
		}
	}
	return a
}

func (s *Server) clusterHardware(c *client) answer {
	if a, lacks := s.lacks("CONFIG"); lacks {
		return a
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := answer{columns: []string{"INSTANCE", "NAME", "VALUE"}}
	for _, t := range s.tikvs {
		if t.fault == Unreachable {
			c.warnings = append(c.warnings, fmt.Sprintf("rpc error: code = Unavailable desc = connection to %s refused", t.Address))
			continue
		}
		a.rows = append(a.rows,
			[]string{t.Address, "cpu-logical-cores", formatFloat(t.Cores)},
			[]string{t.Address, "cpu-physical-cores", formatFloat(t.PhysicalCores)})
	}
	return a
}

func (s *Server) clusterInfo(sql string) answer {
	if a, lacks := s.lacks("PROCESS"); lacks {
		return a
	}
	a := answer{columns: []string{"TYPE", "INSTANCE", "STATUS_ADDRESS", "VERSION", "UPTIME"}}
	if !typeTiKV.MatchString(sql) {
		a.rows = append(a.rows, []string{"tidb", s.Addr(), "127.0.0.1:10080", "8.5.0", "1h2m3s"})
	}
	for _, t := range s.matching(sql) {
		a.rows = append(a.rows, []string{"tikv", t.Address, t.StatusAddress, "8.5.0", "1h2m3.5s"})
	}
	return a
}

// matching returns the TiKVs that the predicate on instance names; all of them
// without one. TiDB compares exactly.
func (s *Server) matching(sql string) []*tikv {
	wanted := list(instanceIs, sql)
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*tikv
	for _, t := range s.tikvs {
		if len(wanted) == 0 || slices.Contains(wanted, t.Address) {
			out = append(out, t)
		}
	}
	return out
}

func list(predicate *regexp.Regexp, sql string) []string {
	m := predicate.FindStringSubmatch(sql)
	if m == nil {
		return nil
	}
	var out []string
	for _, q := range quoted.FindAllStringSubmatch(m[1], -1) {
		out = append(out, q[1])
	}
	return out
}

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
