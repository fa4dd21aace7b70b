package tidbcfg

import (
	"context"
	"errors"
	"fmt"
	"regexp"
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

// Instance is one process of the cluster as TiDB lists it. A running br shows
// up as a TiDB server for as long as it runs.
type Instance struct {
	Type          string // tidb, pd, tikv, tiflash, …
	Address       string // what SET CONFIG takes
	StatusAddress string // "" when it has none
	Version       string
	Uptime        time.Duration // 0 when unknown
}

// Instances returns the processes of the cluster.
func (c *Client) Instances(ctx context.Context) ([]Instance, error) {
	const statement = "SELECT `TYPE`, `INSTANCE`, `STATUS_ADDRESS`, `VERSION`, `UPTIME` FROM information_schema.cluster_info"
	rows, _, err := c.query(ctx, statement)
	if err != nil {
		return nil, fmt.Errorf("read cluster_info: %w", err)
	}
	out := make([]Instance, 0, len(rows))
	for _, row := range rows {
		uptime, err := time.ParseDuration(row[4])
		if err != nil {
			uptime = 0
		}
		out = append(out, Instance{Type: row[0], Address: row[1], StatusAddress: row[2], Version: row[3], Uptime: uptime})
	}
	return out, nil
}

// tableCountLimit bounds the count on the server's side too: with a million
// tables it can take long, and it is a nicety.
const tableCountLimit = 5 * time.Second

// TableCount returns the number of user tables. An error means "unknown"; the
// caller plans without it.
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
	return n, nil
}

var releaseVersion = regexp.MustCompile(`(?m)^Release Version: (\S+)`)

// errNotTiDB is what a MySQL server or a proxy in front of one earns.
var errNotTiDB = errors.New("server is not TiDB")

// codeUnknownFunction is MySQL's answer to tidb_version().
const codeUnknownFunction = 1305

// Version returns the version of the TiDB server that answers, for example
// "v8.5.0". It asks tidb_version(), because VERSION() can be configured.
func (c *Client) Version(ctx context.Context) (string, error) {
	rows, _, err := c.query(ctx, "SELECT tidb_version()")
	if serverCode(err) == codeUnknownFunction {
		return "", fmt.Errorf("read version: %w: %w", errNotTiDB, err)
	}
	if err != nil {
		return "", fmt.Errorf("read version: %w", err)
	}
	if len(rows) == 1 {
		if m := releaseVersion.FindStringSubmatch(rows[0][0]); m != nil {
			return m[1], nil
		}
	}
	return "", fmt.Errorf("read version: no release version in %q", rows)
}
