package tidbcfg

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// GCVariables are TiDB's garbage collection settings and state. brctl only
// reads them.
type GCVariables struct {
	Enabled     bool
	LifeTime    time.Duration // 0 when the row is missing
	RunInterval time.Duration
	SafePointAt time.Time // the GC worker's own record; zero when GC never ran
	LastRunAt   time.Time
}

// GC reads mysql.tidb, where TiDB keeps the tidb_gc_* variables and the state
// of its GC worker.
func (c *Client) GC(ctx context.Context) (GCVariables, error) {
	const statement = "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM mysql.tidb WHERE VARIABLE_NAME IN ('tikv_gc_enable'," +
		" 'tikv_gc_life_time', 'tikv_gc_run_interval', 'tikv_gc_safe_point', 'tikv_gc_last_run_time')"
	rows, _, err := c.query(ctx, statement)
	if err != nil {
		return GCVariables{}, fmt.Errorf("read mysql.tidb: %w", err)
	}
	gc := GCVariables{Enabled: true} // TiDB's default when the row is missing
	for _, row := range rows {
		if err := gc.set(row[0], row[1]); err != nil {
			return GCVariables{}, fmt.Errorf("read mysql.tidb: %s: %w", row[0], err)
		}
	}
	return gc, nil
}

func (g *GCVariables) set(name, value string) (err error) {
	switch name {
	case "tikv_gc_enable":
		g.Enabled = !strings.EqualFold(value, "false") && !strings.EqualFold(value, "off") && value != "0"
	case "tikv_gc_life_time":
		g.LifeTime, err = time.ParseDuration(value)
	case "tikv_gc_run_interval":
		g.RunInterval, err = time.ParseDuration(value)
	case "tikv_gc_safe_point":
		g.SafePointAt, err = parseGCTime(value)
	case "tikv_gc_last_run_time":
		g.LastRunAt, err = parseGCTime(value)
	}
	return err
}

// gcTimeLayout accepts a fraction of a second as well, as Go's parser does for
// any layout without one.
const gcTimeLayout = "20060102-15:04:05 -0700"

// parseGCTime reads TiDB's layout. Rows written by old versions have no
// fraction and a zone name behind the offset ("… +0800 CST"); client-go drops
// that word, and so do we.
func parseGCTime(value string) (time.Time, error) {
	t, err := time.Parse(gcTimeLayout, value)
	if err == nil {
		return t, nil
	}
	if i := strings.LastIndexByte(value, ' '); i > 0 {
		if t, err := time.Parse(gcTimeLayout, value[:i]); err == nil {
			return t, nil
		}
	}
	return time.Time{}, err
}
