package tidbcfg

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Cores returns the logical cores of each TiKV, by instance. It is the
// instance's own limit (cgroup quota and cpuset applied), may be fractional,
// and may be smaller than the host. Nodes that did not answer are missing;
// warnings, meant for people, name them and the instances that are bound to a
// part of their host (fewer logical than physical cores).
func (c *Client) Cores(ctx context.Context) (map[string]float64, []string, error) {
	const statement = "SELECT `INSTANCE`, `NAME`, `VALUE` FROM information_schema.cluster_hardware" +
		" WHERE `TYPE` = 'tikv' AND `DEVICE_TYPE` = 'cpu' AND `NAME` IN ('cpu-logical-cores', 'cpu-physical-cores')"
	rows, warnings, err := c.query(ctx, statement)
	if err != nil {
		return nil, nil, fmt.Errorf("read cluster_hardware: %w", err)
	}
	logical := make(map[string]float64)
	physical := make(map[string]float64)
	for _, row := range rows {
		cores, err := strconv.ParseFloat(row[2], 64)
		if err != nil || !(cores > 0) {
			warnings = append(warnings, fmt.Sprintf("%s: %s is %q", row[0], row[1], row[2]))
			continue
		}
		if row[1] == "cpu-logical-cores" {
			logical[row[0]] = cores
		} else {
			physical[row[0]] = cores
		}
	}
	return logical, append(warnings, boundInstances(rows, logical, physical)...), nil
}

// boundInstances walks rows to keep their order.
func boundInstances(rows [][]string, logical, physical map[string]float64) []string {
	var out []string
	for _, row := range rows {
		instance := row[0]
		l, known := logical[instance]
		if row[1] == "cpu-logical-cores" && known && physical[instance] > l {
			out = append(out, fmt.Sprintf("%s: %v logical cores of a host with %v physical ones: bound by NUMA or a CPU quota",
				instance, l, physical[instance]))
		}
	}
	return out
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
