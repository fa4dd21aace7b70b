package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/brctl/brctl/pkg/policy"
)

// Event is one event of a run with its number. Numbers in Data are read back as
// json.Number, so that none loses digits.
type Event struct {
	Seq int64 `json:"seq"` // from 1, without gaps
	policy.Event
}

// eventRow is an Event as it is kept.
type eventRow struct {
	Event
	data *map[string]any
}

func (e *eventRow) columns() []column {
	return []column{
		{"seq", &e.Seq},
		{"at", instant{&e.At}},
		{"kind", &e.Kind},
		{"message", &e.Message},
		{"data", asJSON(&e.data)},
	}
}

// AppendEvent adds an event to a run and returns its number.
func (db *DB) AppendEvent(ctx context.Context, runID string, e policy.Event) (int64, error) {
	var seq int64
	err := db.transact(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		seq, err = appendEvent(ctx, tx, runID, e)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("append event to run %s: %w", runID, err)
	}
	return seq, nil
}

func appendEvent(ctx context.Context, tx *sql.Tx, runID string, e policy.Event) (seq int64, err error) {
	data := &e.Data
	if e.Data == nil {
		data = nil
	}
	const query = `INSERT INTO events (run_id, seq, at, kind, message, data)
		SELECT id, 1 + coalesce((SELECT max(seq) FROM events WHERE run_id = id), 0), ?, ?, ?, ? FROM runs WHERE id = ?
		RETURNING seq`
	row := tx.QueryRowContext(ctx, query, instant{&e.At}, e.Kind, e.Message, asJSON(&data), runID)
	err = foundRow(row.Scan(&seq))
	return seq, err
}

// Events returns the events of a run after a number (0 = all), in their order.
func (db *DB) Events(ctx context.Context, runID string, after int64) ([]Event, error) {
	const from = "FROM events WHERE run_id = ? AND seq > ? ORDER BY seq"
	rows, err := selectAll(ctx, db, (*eventRow).columns, from, runID, after)
	if err != nil {
		return nil, fmt.Errorf("list events of run %s: %w", runID, err)
	}
	out := make([]Event, len(rows))
	for i, r := range rows {
		out[i] = r.Event
		if r.data != nil {
			out[i].Data = *r.data
		}
	}
	return out, nil
}

// foundRow turns a statement that returned no row into ErrNotFound.
func foundRow(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	return err
}
