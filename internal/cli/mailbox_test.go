package cli

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/app"
)

// slowDisplay is a recorder whose terminal takes nothing until it is released.
type slowDisplay struct {
	release chan struct{}
	notes   []string
	closed  bool
}

func (d *slowDisplay) update(s app.Status) {
	<-d.release
	d.notes = append(d.notes, s.Note)
}
func (d *slowDisplay) warn(text string) { d.update(app.Status{Note: "warning: " + text}) }
func (d *slowDisplay) close()           { d.closed = true }

func TestAStoppedTerminalHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDisplay{release: make(chan struct{})}
		m := newMailbox(d)
		began := time.Now()
		m.update(app.Status{Note: "x"})
		synctest.Wait() // the terminal is stuck in this one
		for range 3 * mailboxSize {
			m.update(app.Status{Note: "x"})
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("updates waited %s for the terminal", took)
		}
		m.close()
		if took := time.Since(began); took != closeLimit {
			t.Errorf("the end waited %s for the terminal, want %s", took, closeLimit)
		}
		m.update(app.Status{Note: "late"}) // is dropped
		close(d.release)
		<-m.done
		if n := len(d.notes); n != 1+mailboxSize {
			t.Errorf("%d letters were kept, want the stuck one and %d", n, mailboxSize)
		}
	})
}

func TestEverythingIsShownInOrderBeforeTheEnd(t *testing.T) {
	d := &slowDisplay{release: make(chan struct{})}
	close(d.release)
	m := newMailbox(d)
	m.update(app.Status{Note: "a"})
	m.warn("b")
	m.update(app.Status{Note: "c"})
	m.close()
	if diff := cmp.Diff([]string{"a", "warning: b", "c"}, d.notes); diff != "" || !d.closed {
		t.Errorf("shown (-want +got), closed %v:\n%s", d.closed, diff)
	}
}
