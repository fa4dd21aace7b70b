package bed

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/brctl/brctl/lab/internal/engine"
)

// fillers is how many tables are made at a time.
const fillers = 8

// fill makes the tables once and tells the region table that the virtual data is theirs.
func (b *Bed) fill(ctx context.Context, _ *errgroup.Group) error {
	db, err := OpenSQL(b.info.SQLAddress, "")
	if err != nil {
		return err
	}
	defer db.Close()
	sh := b.opts.Shape
	if _, err := db.ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS lab"); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	tables, tctx := errgroup.WithContext(ctx)
	tables.SetLimit(fillers)
	for i := range sh.Tables {
		tables.Go(func() error { return fillTable(tctx, db, fmt.Sprintf("lab.t%03d", i+1), sh.Rows) })
	}
	if err := tables.Wait(); err != nil {
		return err
	}
	ids, err := tableIDs(ctx, db)
	if err != nil {
		return err
	}
	if _, err := b.regions.Split(ctx, engine.SplitKeys(ids, sh.Rows, sh.Stores())); err != nil {
		return fmt.Errorf("split tables: %w", err)
	}
	b.regions.SetData(ids, int64(sh.LeaderBytes()))
	return nil
}

// fillTable inserts all rows in one statement, so a table that a killed lab left empty is filled now.
func fillTable(ctx context.Context, db *sql.DB, table string, rows int) error {
	create := "CREATE TABLE IF NOT EXISTS " + table + " (id BIGINT PRIMARY KEY CLUSTERED, k BIGINT NOT NULL, v VARCHAR(120) NOT NULL)"
	if _, err := db.ExecContext(ctx, create); err != nil {
		return fmt.Errorf("create table %s: %w", table, err)
	}
	var n int
	if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table).Scan(&n); err != nil {
		return fmt.Errorf("count rows of %s: %w", table, err)
	}
	if n > 0 {
		return nil
	}
	values := make([]string, rows)
	for i := range values {
		values[i] = fmt.Sprintf("(%d,%d,REPEAT('%c',100))", i+1, i*7, 'a'+i%26)
	}
	if _, err := db.ExecContext(ctx, "INSERT INTO "+table+" VALUES "+strings.Join(values, ",")); err != nil {
		return fmt.Errorf("fill table %s: %w", table, err)
	}
	return nil
}

func tableIDs(ctx context.Context, db *sql.DB) ([]int64, error) {
	rows, err := db.QueryContext(ctx, "SELECT tidb_table_id FROM information_schema.tables WHERE table_schema = 'lab'")
	if err != nil {
		return nil, fmt.Errorf("read table ids: %w", err)
	}
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("read table ids: %w", err)
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}
