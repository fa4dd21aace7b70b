package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"
)

// migration brings a file from the schema before it to its own.
type migration struct {
	version int
	sql     string
}

// migrations returns all of them, in order. One that was released is never
// changed; the next number follows.
func migrations() []migration {
	return []migration{
		{1, schemaV1},
	}
}

const schemaV1 = `
CREATE TABLE runs (
	id                 TEXT    PRIMARY KEY, -- ULID
	cluster_id         TEXT    NOT NULL,
	cluster_name       TEXT    NOT NULL,
	schedule           TEXT    NOT NULL,
	triggered_by       TEXT    NOT NULL,
	status             TEXT    NOT NULL,
	final              INTEGER NOT NULL, -- 1 when the status is an end
	step               TEXT    NOT NULL,
	verdict            TEXT    NOT NULL, -- the status it will end with once all is put back, '' while open
	reason             TEXT    NOT NULL,
	message            TEXT    NOT NULL,
	warnings           TEXT    NOT NULL, -- JSON array
	plan               TEXT,
	invocation         TEXT,
	storage_url        TEXT    NOT NULL,
	backup_ts          TEXT    NOT NULL,
	service_safe_point TEXT    NOT NULL, -- service id in PD
	size_bytes         TEXT    NOT NULL,
	forecast_ms        INTEGER NOT NULL,
	duration_ms        INTEGER NOT NULL,
	created_at         INTEGER NOT NULL,
	started_at         INTEGER,
	ended_at           INTEGER,
	host               TEXT    NOT NULL,
	pid                INTEGER NOT NULL,
	boot_id            TEXT    NOT NULL,
	fence              TEXT    NOT NULL
) STRICT;
CREATE INDEX runs_by_schedule ON runs (cluster_id, schedule, created_at);
CREATE INDEX runs_by_time     ON runs (created_at);
CREATE INDEX runs_unfinished  ON runs (cluster_id) WHERE final = 0;

CREATE TABLE attempts (
	run_id     TEXT    NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
	n          INTEGER NOT NULL, -- from 1
	started_at INTEGER NOT NULL,
	ended_at   INTEGER,
	child      TEXT,
	outcome    TEXT,
	PRIMARY KEY (run_id, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
	run_id  TEXT    NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
	seq     INTEGER NOT NULL, -- from 1
	at      INTEGER NOT NULL,
	kind    TEXT    NOT NULL,
	message TEXT    NOT NULL,
	data    TEXT,
	PRIMARY KEY (run_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE settings (
	run_id    TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
	instance  TEXT NOT NULL,
	name      TEXT NOT NULL,
	store_id  TEXT NOT NULL,
	old_value TEXT NOT NULL,
	set_value TEXT NOT NULL,
	restored  TEXT NOT NULL,
	message   TEXT NOT NULL,
	PRIMARY KEY (run_id, instance, name, store_id)
) STRICT, WITHOUT ROWID;
`

// schemaVersions exists in every file, whatever its schema, and never changes:
// it is how any brctl tells a newer file from a broken one.
const schemaVersions = `
CREATE TABLE IF NOT EXISTS schema_versions (
	version    INTEGER PRIMARY KEY,
	applied_at INTEGER NOT NULL,
	brctl      TEXT    NOT NULL -- version of the brctl that applied it
) STRICT;
`

// schema is the state of a file's schema.
type schema struct {
	version int
	brctl   string // who applied the version
}

// queryer is the part of *sql.DB and *sql.Tx that reading the schema needs.
type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// readSchema returns version 0 for an empty file and refuses the database of
// some other program.
func readSchema(ctx context.Context, q queryer) (schema, error) {
	var tables, ours int
	const count = `SELECT count(*), count(*) FILTER (WHERE name = 'schema_versions') FROM sqlite_master WHERE type = 'table'`
	if err := q.QueryRowContext(ctx, count).Scan(&tables, &ours); err != nil {
		return schema{}, fmt.Errorf("read schema: %w", err)
	}
	if ours == 0 && tables > 0 {
		return schema{}, errors.New("read schema: the file is the database of another program")
	}
	if ours == 0 {
		return schema{}, nil
	}
	var s schema
	const last = `SELECT version, brctl FROM schema_versions ORDER BY version DESC LIMIT 1`
	err := q.QueryRowContext(ctx, last).Scan(&s.version, &s.brctl)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return schema{}, fmt.Errorf("read schema: %w", err)
	}
	return s, nil
}

// migrate applies what is missing, all of it or nothing. The version is read
// again inside the transaction: another process may have migrated meanwhile.
func migrate(ctx context.Context, db *sql.DB, steps []migration, brctl string, now time.Time) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin migration: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit there is nothing to roll back
	have, err := readSchema(ctx, tx)
	if err != nil {
		return err
	}
	if err := refuseNewer(have, steps); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, schemaVersions); err != nil {
		return fmt.Errorf("create schema_versions: %w", err)
	}
	for _, m := range steps {
		if m.version <= have.version {
			continue
		}
		if _, err := tx.ExecContext(ctx, m.sql); err != nil {
			return fmt.Errorf("migrate to schema %d: %w", m.version, err)
		}
		const note = `INSERT INTO schema_versions (version, applied_at, brctl) VALUES (?, ?, ?)`
		if _, err := tx.ExecContext(ctx, note, m.version, now.UnixMilli(), brctl); err != nil {
			return fmt.Errorf("record schema %d: %w", m.version, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit migration: %w", err)
	}
	return nil
}

func refuseNewer(have schema, steps []migration) error {
	if newest := newestOf(steps); have.version > newest {
		return fmt.Errorf("%w: it has schema %d, applied by brctl %s, and this brctl knows schemas up to %d; "+
			"use brctl %s or later (`brctl settings` works without this file)",
			ErrNewerSchema, have.version, have.brctl, newest, have.brctl)
	}
	return nil
}

func newestOf(steps []migration) int {
	return slices.MaxFunc(steps, func(a, b migration) int { return a.version - b.version }).version
}
