package bed

import (
	"context"
	"errors"
	"fmt"
	"time"

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
		if ended, _ := p.Exited(); ended {
			return fmt.Errorf("kill %s: it does not run", p.Name())
		}
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

// PD acts on a member. Without a name the leader is meant, and to start, every member that does not run. After a start
// it waits until the member serves, unless too few members run to have a leader.
func (b *Bed) PD(ctx context.Context, action, name string) error {
	chosen, err := b.chooseMembers(ctx, action, name)
	if err != nil {
		return err
	}
	for _, i := range chosen {
		if err := act(b.members[i], action); err != nil {
			return err
		}
	}
	if action == Kill || !b.hasQuorum() {
		return nil
	}
	for _, i := range chosen {
		if err := poll(ctx, time.Minute, func() error { return b.memberServes(ctx, i) }); err != nil {
			return fmt.Errorf("%s %s: %w", action, b.members[i].Name(), err)
		}
	}
	return nil
}

// chooseMembers returns the positions of the members that an action is for, at least one.
func (b *Bed) chooseMembers(ctx context.Context, action, name string) ([]int, error) {
	if name == "" && action != Start {
		leader, err := pdLeader(ctx, b.info.PDEndpoints...)
		if err != nil {
			return nil, err
		}
		name = leader
	}
	var chosen []int
	for i, m := range b.members {
		if ended, _ := m.Exited(); m.Name() == name || name == "" && ended {
			chosen = append(chosen, i)
		}
	}
	switch {
	case len(chosen) > 0:
		return chosen, nil
	case name == "":
		return nil, errors.New("start PD: every member runs already")
	default:
		return nil, fmt.Errorf("%s PD: no member %q", action, name)
	}
}

func (b *Bed) hasQuorum() bool {
	running := 0
	for _, m := range b.members {
		if ended, _ := m.Exited(); !ended {
			running++
		}
	}
	return running > len(b.members)/2
}

// memberServes asks the member itself for the leader, and the leader for a timestamp: a member names the former leader
// for as long as its lease lasts.
func (b *Bed) memberServes(ctx context.Context, i int) error {
	if ended, err := b.members[i].Exited(); ended {
		name := b.members[i].Name()
		return fmt.Errorf("%w: %s ended (%v), see log/%s.out", errGiveUp, name, err, name)
	}
	if _, err := pdLeader(ctx, b.info.PDEndpoints[i]); err != nil {
		return err
	}
	_, err := b.timestamp(ctx)
	return err
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
