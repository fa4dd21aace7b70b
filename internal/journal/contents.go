package journal

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/brctl/brctl/pkg/policy"
)

// Contents is what a journal says, at one moment.
type Contents struct {
	Conn     ConnInfo
	Pending  []Pending         // by instance, name, store id
	Children []policy.ChildRef // engine processes that were not seen to end
	// Notes are sentences for people about what was odd in the file.
	Notes []string
}

// state is the contents while they change.
type state struct {
	conn     ConnInfo
	pending  map[Key]Pending
	children []policy.ChildRef
}

func newState() *state { return &state{pending: map[Key]Pending{}} }

func (s *state) clone() *state {
	c := &state{conn: s.conn, pending: make(map[Key]Pending, len(s.pending)), children: slices.Clone(s.children)}
	for k, p := range s.pending {
		c.pending[k] = p.clone()
	}
	return c
}

// apply changes s by one record. An unknown operation is damage: a new one
// would have come with a new version.
func (s *state) apply(r record) error {
	switch r.Op {
	case opSnapshot:
		s.load(r)
	case opConnect:
		s.conn = *orZero(r.Conn)
	case opIntend:
		s.intend(r)
	case opSaw:
		s.each(r.Keys, func(p *Pending) { p.addOurs(r.Value) })
	case opClose:
		for _, k := range r.Keys {
			delete(s.pending, k)
		}
	case opChildStarted:
		s.dropChild(*orZero(r.Child))
		s.children = append(s.children, *orZero(r.Child))
	case opChildGone:
		s.dropChild(*orZero(r.Child))
	default:
		return errDamaged{"unknown operation " + string(r.Op)}
	}
	return nil
}

func (s *state) load(r record) {
	*s = *newState()
	s.conn = *orZero(r.Conn)
	s.children = r.Children
	for _, p := range r.Pending {
		s.pending[p.Key] = p
	}
}

// intend keeps the old value, the run and the time of a key that is already
// pending, and adds to what is ours.
func (s *state) intend(r record) {
	for _, e := range r.Entries {
		p, ok := s.pending[e.Key]
		if !ok {
			p = Pending{Key: e.Key, Old: e.Old, RunID: r.RunID, Since: r.At}
		}
		p.addOurs(e.New)
		p.Sent = e.New
		s.pending[e.Key] = p
	}
}

func (s *state) each(keys []Key, change func(*Pending)) {
	for _, k := range keys {
		if p, ok := s.pending[k]; ok {
			change(&p)
			s.pending[k] = p
		}
	}
}

func (s *state) dropChild(c policy.ChildRef) {
	s.children = slices.DeleteFunc(s.children, func(o policy.ChildRef) bool { return o == c })
}

// snapshot is the one record that stands for all of s.
func (s *state) snapshot() record {
	return record{Op: opSnapshot, Conn: &s.conn, Pending: s.sorted(), Children: s.children}
}

func (s *state) sorted() []Pending {
	out := make([]Pending, 0, len(s.pending))
	for _, p := range s.pending {
		out = append(out, p.clone())
	}
	slices.SortFunc(out, func(a, b Pending) int {
		return cmp.Or(
			strings.Compare(a.Instance, b.Instance),
			strings.Compare(a.Name, b.Name),
			cmp.Compare(a.StoreID, b.StoreID))
	})
	return out
}

// equal reports whether two states say the same.
func (s *state) equal(o *state) bool {
	a, errA := encode(s.snapshot())
	b, errB := encode(o.snapshot())
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

func (s *state) contents(notes []string) Contents {
	return Contents{Conn: s.conn, Pending: s.sorted(), Children: slices.Clone(s.children), Notes: notes}
}

func (p *Pending) addOurs(value string) {
	if !slices.Contains(p.Ours, value) {
		p.Ours = append(p.Ours, value)
	}
}

func orZero[T any](p *T) *T {
	if p == nil {
		return new(T)
	}
	return p
}
