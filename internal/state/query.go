package state

import (
	"context"
	"database/sql"
	"fmt"
)

// transact runs work in a transaction that has the write lock from its start.
func (db *DB) transact(ctx context.Context, work func(context.Context, *sql.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	tx, err := db.sql.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit there is nothing to roll back
	if err := work(ctx, tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// selectAll returns the rows of "FROM …" as values of a row type, an empty slice
// where there are none.
func selectAll[T any](ctx context.Context, db *DB, columns func(*T) []column, from string, args ...any) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rows, err := db.sql.QueryContext(ctx, "SELECT "+names(columns(new(T)))+" "+from, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	out := []T{}
	for rows.Next() {
		var v T
		if err := rows.Scan(fields(columns(&v))...); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// mustChange turns a statement that found no row into ErrNotFound.
func mustChange(res sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err == nil && n == 0 {
		err = ErrNotFound
	}
	return err
}
