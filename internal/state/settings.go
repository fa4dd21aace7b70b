package state

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/brctl/brctl/pkg/policy"
)

// Setting is one setting that a run changed, for its record. What is still to
// be put back is the journal's to know.
type Setting struct {
	policy.SettingKey
	StoreID  uint64 `json:"store_id"`
	Old      string `json:"old"`
	Set      string `json:"set"`
	Restored string `json:"restored"` // "" until tried; then the journal's word: restored, pending, …
	Message  string `json:"message,omitempty"`
}

func (s *Setting) columns() []column {
	return []column{
		{"instance", &s.Instance},
		{"name", &s.Name},
		{"store_id", asDecimal(&s.StoreID)},
		{"old_value", &s.Old},
		{"set_value", &s.Set},
		{"restored", &s.Restored},
		{"message", &s.Message},
	}
}

// SaveSettings records settings of a run, all or none; one that is there
// already takes the new values.
func (db *DB) SaveSettings(ctx context.Context, runID string, settings []Setting) error {
	err := db.transact(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for _, s := range settings {
			query, args := insert("settings", append(s.columns(), column{"run_id", runID}))
			query += ` ON CONFLICT DO UPDATE SET old_value = excluded.old_value, set_value = excluded.set_value,
				restored = excluded.restored, message = excluded.message`
			if _, err := tx.ExecContext(ctx, query, args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("save settings of run %s: %w", runID, err)
	}
	return nil
}

// Settings returns the settings that a run changed, by instance and name.
func (db *DB) Settings(ctx context.Context, runID string) ([]Setting, error) {
	const from = "FROM settings WHERE run_id = ? ORDER BY instance, name, store_id"
	out, err := selectAll(ctx, db, (*Setting).columns, from, runID)
	if err != nil {
		return nil, fmt.Errorf("list settings of run %s: %w", runID, err)
	}
	return out, nil
}
