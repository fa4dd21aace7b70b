package tidbcfg

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Hardware is what one TiKV says of its CPU; zero is unknown.
type Hardware struct {
	Logical  float64 // the instance's own limit: cgroup quota and cpuset applied, may be fractional
	Physical float64 // of its machine, without hyper-threads
}

// Hardware returns the CPU of each TiKV, by instance. Nodes that did not answer
// are missing, and warnings, meant for people, name them. TiDB asks all nodes at
// once and gives each 10 s; with a StatementTimeout below that, one dead node
// costs the whole answer.
func (c *Client) Hardware(ctx context.Context) (map[string]Hardware, []string, error) {
	const statement = "SELECT `INSTANCE`, `NAME`, `VALUE` FROM information_schema.cluster_hardware" +
		" WHERE `TYPE` = 'tikv' AND `DEVICE_TYPE` = 'cpu' AND `NAME` IN ('cpu-logical-cores', 'cpu-physical-cores')"
	rows, warnings, err := c.query(ctx, statement)
	if err != nil {
		return nil, nil, fmt.Errorf("read cluster_hardware: %w", err)
	}
	out := make(map[string]Hardware)
	for _, row := range rows {
		instance, name, value := row[0], row[1], row[2]
		cores, err := strconv.ParseFloat(value, 64)
		if err != nil || !(cores > 0) {
			warnings = append(warnings, fmt.Sprintf("%s: %s is %q", instance, name, value))
			continue
		}
		h := out[instance]
		if name == "cpu-logical-cores" {
			h.Logical = cores
		} else {
			h.Physical = cores
		}
		out[instance] = h
	}
	return out, warnings, nil
}

// tableCountLimit bounds the count on the server's side too: with a million
// tables it can take long, and it is a nicety.
const tableCountLimit = 5 * time.Second

// errNoTables: a cluster without any table has nothing to back up, so nobody
// plans for one, while an account that may see none is easily made.
var errNoTables = errors.New("the account sees none")

// TableCount returns the number of user tables that the account may see. TiDB
// lists a table to whoever has any privilege on it, on its database or on *.*,
// and CONFIG on *.*, which brctl needs anyway, is one of these; an account that
// sees a part only gets that part's number, and nothing tells it from the whole.
// An error means "unknown", never 0; the caller plans without it.
func (c *Client) TableCount(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, tableCountLimit+time.Second)
	defer cancel()
	statement := fmt.Sprintf("SELECT /*+ MAX_EXECUTION_TIME(%d) */ COUNT(*) FROM information_schema.tables"+
		" WHERE `TABLE_TYPE` = 'BASE TABLE' AND `TABLE_SCHEMA` NOT IN"+
		" ('mysql', 'sys', 'information_schema', 'performance_schema', 'metrics_schema')", tableCountLimit.Milliseconds())
	rows, _, err := c.query(ctx, statement)
	if err != nil {
		return 0, fmt.Errorf("count tables: %w", err)
	}
	if len(rows) != 1 {
		return 0, fmt.Errorf("count tables: %d rows", len(rows))
	}
	n, err := strconv.Atoi(rows[0][0])
	if err != nil {
		return 0, fmt.Errorf("count tables: %w", err)
	}
	if n == 0 {
		return 0, fmt.Errorf("count tables: %w", errNoTables)
	}
	return n, nil
}
