package state

import (
	"context"
	"database/sql"
	"testing"
)

// WithMigration returns o with one more migration than there is, as the next
// brctl would have.
func WithMigration(t *testing.T, o Options, statements string) Options {
	t.Helper()
	o.migrations = append(migrations(), migration{newestOf(migrations()) + 1, statements})
	return o
}

// NewestSchema is the schema that this brctl knows.
func NewestSchema() int { return newestOf(migrations()) }

// SQL is the connection, for tests that look at or limit the file itself.
func SQL(tb testing.TB, db *DB) *sql.DB {
	tb.Helper()
	return db.sql
}

// Import makes the state database of dir from the statements of a dump.
func Import(t *testing.T, dir, statements string) {
	t.Helper()
	path := dir + "/" + fileName
	if err := create(path); err != nil {
		t.Fatal(err)
	}
	db, err := connect(path, "rw")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(context.Background(), statements); err != nil {
		t.Fatal(err)
	}
}
