package cli

import (
	"sync"
	"time"

	"github.com/brctl/brctl/internal/app"
)

const (
	// mailboxSize is how much is kept for a terminal that does not take it; the
	// oldest goes first.
	mailboxSize = 256
	// closeLimit is how long an end waits for the terminal.
	closeLimit = 2 * time.Second
)

// mailbox keeps a display away from the run: a terminal that is stopped
// (Ctrl-S, a stalled ssh, a full pipe) must not hold up a backup, or the
// restore after it.
type mailbox struct {
	show display
	wake chan struct{}
	done chan struct{}

	mu     sync.Mutex
	mail   []func()
	closed bool
}

// newMailbox starts the goroutine that shows; close ends it.
func newMailbox(show display) *mailbox {
	m := &mailbox{show: show, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go m.deliver()
	return m
}

func (m *mailbox) update(s app.Status) { m.post(func() { m.show.update(s) }) }
func (m *mailbox) warn(text string)    { m.post(func() { m.show.warn(text) }) }

func (m *mailbox) post(letter func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	if len(m.mail) == mailboxSize {
		m.mail = m.mail[1:]
	}
	m.mail = append(m.mail, letter)
	m.ring()
}

func (m *mailbox) ring() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *mailbox) deliver() {
	defer close(m.done)
	for range m.wake {
		letters, last := m.take()
		for _, letter := range letters {
			letter()
		}
		if last {
			m.show.close()
			return
		}
	}
}

func (m *mailbox) take() (letters []func(), last bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	letters, m.mail = m.mail, nil
	return letters, m.closed
}

// close shows what is left and waits for it, but not for a terminal that takes
// nothing.
func (m *mailbox) close() {
	m.mu.Lock()
	m.closed = true
	m.ring()
	m.mu.Unlock()
	select {
	case <-m.done:
	case <-time.After(closeLimit):
	}
}
