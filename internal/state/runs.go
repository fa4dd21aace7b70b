package state

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/brctl/brctl/pkg/policy"
)

// CreateRun records a new run. Its id is a ULID, so that runs created in the
// same millisecond still have an order.
func (db *DB) CreateRun(ctx context.Context, r Run) error {
	if _, err := ulid.ParseStrict(r.ID); err != nil {
		return fmt.Errorf("create run %q: %w", r.ID, err)
	}
	if r.CreatedAt.IsZero() {
		return fmt.Errorf("create run %s: it has no creation time", r.ID)
	}
	query, args := insert("runs", append(r.columns(), column{"final", r.Status.Final()}))
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := db.sql.ExecContext(ctx, query, args...); err != nil {
		return fmt.Errorf("create run %s: %w", r.ID, err)
	}
	return nil
}

// UpdateRun changes a run and appends events to it, both or neither. It returns
// ErrNotFound where there is no such run.
func (db *DB) UpdateRun(ctx context.Context, id string, u RunUpdate, events ...policy.Event) error {
	err := db.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if err := updateRun(ctx, tx, id, u.columns()); err != nil {
			return err
		}
		for _, e := range events {
			if _, err := appendEvent(ctx, tx, id, e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("update run %s: %w", id, err)
	}
	return nil
}

// updateRun sets the columns; without any it still checks that the run exists.
func updateRun(ctx context.Context, tx *sql.Tx, id string, cols []column) error {
	sets := []string{"id = id"}
	for _, c := range cols {
		sets = append(sets, c.name+" = ?")
	}
	query := "UPDATE runs SET " + strings.Join(sets, ", ") + " WHERE id = ?"
	return mustChange(tx.ExecContext(ctx, query, append(fields(cols), id)...))
}

// Run returns one run, or ErrNotFound.
func (db *DB) Run(ctx context.Context, id string) (Run, error) {
	runs, err := db.selectRuns(ctx, "FROM runs WHERE id = ?", id)
	if err == nil && len(runs) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Run{}, fmt.Errorf("read run %s: %w", id, err)
	}
	return runs[0], nil
}

// Filter selects runs; a zero field does not.
type Filter struct {
	ClusterID uint64
	Schedule  string
	Statuses  []policy.RunStatus
	Since     time.Time // created at or after
	Before    time.Time // created before
	Limit     int       // 0 = all
}

// Runs returns the runs that the filter selects, the newest first.
func (db *DB) Runs(ctx context.Context, f Filter) ([]Run, error) {
	where, args := f.where()
	query := "FROM runs" + where + " ORDER BY created_at DESC, id DESC"
	if f.Limit > 0 {
		query, args = query+" LIMIT ?", append(args, f.Limit)
	}
	runs, err := db.selectRuns(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	return runs, nil
}

func (f Filter) where() (string, []any) {
	var terms []string
	var args []any
	add := func(given bool, term string, values ...any) {
		if given {
			terms, args = append(terms, term), append(args, values...)
		}
	}
	add(f.ClusterID != 0, "cluster_id = ?", asDecimal(&f.ClusterID))
	add(f.Schedule != "", "schedule = ?", f.Schedule)
	add(!f.Since.IsZero(), "created_at >= ?", instant{&f.Since})
	add(!f.Before.IsZero(), "created_at < ?", instant{&f.Before})
	add(len(f.Statuses) > 0, "status IN "+marks(len(f.Statuses)), anys(f.Statuses)...)
	if len(terms) == 0 {
		return "", nil
	}
	return " WHERE " + strings.Join(terms, " AND "), args
}

// UnfinishedRuns returns the runs of a cluster that have not come to an end,
// the oldest first: what a start has to take up again.
func (db *DB) UnfinishedRuns(ctx context.Context, clusterID uint64) ([]Run, error) {
	const query = "FROM runs WHERE cluster_id = ? AND final = 0 ORDER BY created_at, id"
	runs, err := db.selectRuns(ctx, query, asDecimal(&clusterID))
	if err != nil {
		return nil, fmt.Errorf("list unfinished runs: %w", err)
	}
	return runs, nil
}

// LastRuns returns the newest run of each schedule of a cluster, by schedule;
// where statuses are given, the newest with one of them.
func (db *DB) LastRuns(ctx context.Context, clusterID uint64, statuses ...policy.RunStatus) ([]Run, error) {
	cluster := asDecimal(&clusterID)
	among, args := "", []any{cluster, cluster}
	if len(statuses) > 0 {
		among = "AND status IN " + marks(len(statuses))
		args = append(args, anys(statuses)...)
	}
	query := `FROM (SELECT DISTINCT schedule AS s FROM runs WHERE cluster_id = ?) JOIN runs ON id = (
		SELECT id FROM runs WHERE cluster_id = ? AND schedule = s ` + among + `
		ORDER BY created_at DESC, id DESC LIMIT 1) ORDER BY schedule`
	runs, err := db.selectRuns(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list last runs: %w", err)
	}
	return runs, nil
}

// selectRuns returns the runs of "FROM …".
func (db *DB) selectRuns(ctx context.Context, from string, args ...any) ([]Run, error) {
	return selectAll(ctx, db, (*Run).columns, from, args...)
}

// marks is "(?, ?)" for n values.
func marks(n int) string {
	return "(" + strings.TrimSuffix(strings.Repeat("?, ", n), ", ") + ")"
}

func anys[T any](values []T) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}
