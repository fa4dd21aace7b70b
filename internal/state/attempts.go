package state

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// Attempt is one start of the engine in a run.
type Attempt struct {
	N         int              `json:"n"` // from 1
	StartedAt time.Time        `json:"started_at"`
	EndedAt   time.Time        `json:"ended_at,omitzero"`
	Child     *policy.ChildRef `json:"child,omitempty"`   // nil: none was started, or we died before we knew
	Outcome   *policy.Outcome  `json:"outcome,omitempty"` // nil until it ended
}

func (a *Attempt) columns() []column {
	return []column{
		{"n", &a.N},
		{"started_at", instant{&a.StartedAt}},
		{"ended_at", instant{&a.EndedAt}},
		{"child", asJSON(&a.Child)},
		{"outcome", asJSON(&a.Outcome)},
	}
}

// StartAttempt records, before the engine is started, that it is about to be,
// and returns the attempt's number.
func (db *DB) StartAttempt(ctx context.Context, runID string, at time.Time) (int, error) {
	var n int
	err := db.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		const query = `INSERT INTO attempts (run_id, n, started_at)
			SELECT id, 1 + (SELECT count(*) FROM attempts WHERE run_id = id), ? FROM runs WHERE id = ? RETURNING n`
		return foundRow(tx.QueryRowContext(ctx, query, instant{&at}, runID).Scan(&n))
	})
	if err != nil {
		return 0, fmt.Errorf("start attempt of run %s: %w", runID, err)
	}
	return n, nil
}

// AttemptChild records the process that an attempt has started.
func (db *DB) AttemptChild(ctx context.Context, runID string, n int, child policy.ChildRef) error {
	c := &child
	const query = `UPDATE attempts SET child = ? WHERE run_id = ? AND n = ? AND ended_at IS NULL`
	return db.changeAttempt(ctx, "record child", runID, n, query, asJSON(&c), runID, n)
}

// EndAttempt records how an attempt ended. An attempt ends once: after that it
// is ErrNotFound.
func (db *DB) EndAttempt(ctx context.Context, runID string, n int, at time.Time, outcome policy.Outcome) error {
	o := &outcome
	const query = `UPDATE attempts SET ended_at = ?, outcome = ? WHERE run_id = ? AND n = ? AND ended_at IS NULL`
	return db.changeAttempt(ctx, "end", runID, n, query, instant{&at}, asJSON(&o), runID, n)
}

func (db *DB) changeAttempt(ctx context.Context, verb, runID string, n int, query string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := mustChange(db.sql.ExecContext(ctx, query, args...)); err != nil {
		return fmt.Errorf("%s of open attempt %d of run %s: %w", verb, n, runID, err)
	}
	return nil
}

// Attempts returns the attempts of a run, the first first.
func (db *DB) Attempts(ctx context.Context, runID string) ([]Attempt, error) {
	out, err := selectAll(ctx, db, (*Attempt).columns, "FROM attempts WHERE run_id = ? ORDER BY n", runID)
	if err != nil {
		return nil, fmt.Errorf("list attempts of run %s: %w", runID, err)
	}
	return out, nil
}
