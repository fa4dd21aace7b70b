package bed

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"

	"github.com/brctl/brctl/lab/internal/child"
	"github.com/brctl/brctl/lab/internal/shape"
)

// sqlTimeout covers TiDB's bootstrap of a new cluster on a busy laptop, and the time after a restart in which TiDB still
// looks for its regions.
const sqlTimeout = 3 * time.Minute

// tidbConfig keeps TiDB's files inside the lab's directory.
const tidbConfig = `socket = ""
temp-dir = %q
tmp-storage-path = %q
[status]
status-host = %q
[log]
slow-query-file = %q
`

func (b *Bed) startTiDB(ctx context.Context, _ *errgroup.Group) error {
	sqlAddr, err := b.ports.Address("tidb", shape.HostName(0))
	if err != nil {
		return err
	}
	statusAddr, err := b.ports.Address("tidb-status", shape.HostName(0))
	if err != nil {
		return err
	}
	b.info.SQLAddress, b.info.TiDBStatusAddress = sqlAddr, statusAddr
	if err := b.ports.Save(); err != nil {
		return err
	}
	if err := b.layoutTiDB(sqlAddr, statusAddr); err != nil {
		return err
	}
	if err := b.tidb.Start(); err != nil {
		return err
	}
	return b.awaitSQL(ctx)
}

func (b *Bed) layoutTiDB(sqlAddr, statusAddr string) error {
	host, port, err := net.SplitHostPort(sqlAddr)
	if err != nil {
		return fmt.Errorf("split address of TiDB: %w", err)
	}
	_, statusPort, err := net.SplitHostPort(statusAddr)
	if err != nil {
		return fmt.Errorf("split status address of TiDB: %w", err)
	}
	conf := fmt.Sprintf(tidbConfig,
		b.path("tidb-tmp"), b.path("tidb-tmp", "storage"), host, b.path("log", "tidb-slow.log"))
	if err := os.WriteFile(b.path("tidb.toml"), []byte(conf), 0o644); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	var endpoints []string
	for _, e := range b.info.PDEndpoints {
		endpoints = append(endpoints, strings.TrimPrefix(e, "http://"))
	}
	b.tidb = child.New(child.Spec{
		Name: "tidb", Path: filepath.Join(b.opts.Bin, "tidb-server"), Dir: b.opts.Dir,
		Args: []string{
			"--config", b.path("tidb.toml"), "--store", "tikv", "--path", strings.Join(endpoints, ","),
			"--host", host, "--advertise-address", host, "-P", port, "--status", statusPort,
			"--log-file", b.path("log", "tidb.log"),
		},
		LogFile: b.path("log", "tidb.out"),
	})
	return nil
}

func (b *Bed) awaitSQL(ctx context.Context) error {
	db, err := OpenSQL(b.info.SQLAddress, "")
	if err != nil {
		return err
	}
	defer db.Close()
	return poll(ctx, sqlTimeout, func() error {
		if ended, err := b.tidb.Exited(); ended {
			return fmt.Errorf("%w: tidb ended (%v), see log/tidb.log", errGiveUp, err)
		}
		var n int
		return db.QueryRowContext(ctx, "SELECT COUNT(*) FROM mysql.tidb").Scan(&n)
	})
}

// OpenSQL opens a database of the lab's TiDB as root, who has no password.
func OpenSQL(addr, database string) (*sql.DB, error) {
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.DBName = "tcp", addr, "root", database
	cfg.Timeout, cfg.ReadTimeout = 2*time.Second, time.Minute
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("open SQL: %w", err)
	}
	return sql.OpenDB(connector), nil
}
