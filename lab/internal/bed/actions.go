package bed

import (
	"context"
	"fmt"

	"github.com/tikv/client-go/v2/oracle"

	"github.com/brctl/brctl/lab/internal/child"
)

// Actions on a child process.
const (
	Kill    = "kill"    // as a crash
	Start   = "start"   // after a kill
	Restart = "restart" // kill and start
)

func act(p *child.Process, action string) error {
	switch action {
	case Kill:
		return p.Kill()
	case Start:
		return p.Start()
	case Restart:
		if err := p.Kill(); err != nil {
			return err
		}
		return p.Start()
	default:
		return fmt.Errorf("action %q: want kill, start or restart", action)
	}
}

// PD acts on a member. Without a name the leader is meant, and to start, every member that does not run.
func (b *Bed) PD(ctx context.Context, action, name string) error {
	if name == "" && action != Start {
		var leader struct {
			Name string `json:"name"`
		}
		if err := b.pdGet(ctx, "/pd/api/v1/leader", &leader); err != nil {
			return err
		}
		name = leader.Name
	}
	found := false
	for _, m := range b.members {
		if ended, _ := m.Exited(); m.Name() == name || name == "" && ended {
			found = true
			if err := act(m, action); err != nil {
				return err
			}
		}
	}
	if !found {
		return fmt.Errorf("no PD member %q to %s", name, action)
	}
	return nil
}

// TiDB acts on TiDB; after a start it waits until SQL answers.
func (b *Bed) TiDB(ctx context.Context, action string) error {
	if err := act(b.tidb, action); err != nil {
		return err
	}
	if action == Kill {
		return nil
	}
	return b.awaitSQL(ctx)
}

// MoveGCSafePoint moves PD's GC safepoint, as TiDB's GC does; 0 means now. It returns where the safepoint is then.
func (b *Bed) MoveGCSafePoint(ctx context.Context, ts uint64) (uint64, error) {
	if ts == 0 {
		physical, logical, err := b.pd.GetTS(ctx)
		if err != nil {
			return 0, fmt.Errorf("get timestamp: %w", err)
		}
		ts = oracle.ComposeTS(physical, logical)
	}
	now, err := b.pd.UpdateGCSafePoint(ctx, ts)
	if err != nil {
		return 0, fmt.Errorf("update GC safepoint: %w", err)
	}
	return now, nil
}

// SetServiceSafePoint adds a service safepoint to PD, or removes it with a TTL of 0 or less. It returns the smallest of
// all.
func (b *Bed) SetServiceSafePoint(ctx context.Context, id string, ttl int64, ts uint64) (uint64, error) {
	smallest, err := b.pd.UpdateServiceGCSafePoint(ctx, id, ttl, ts)
	if err != nil {
		return 0, fmt.Errorf("update service safepoint: %w", err)
	}
	return smallest, nil
}
