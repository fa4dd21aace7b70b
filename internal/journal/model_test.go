package journal_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/journal"
)

// naive is the journal as a plain history per setting: it keeps everything and
// works the answer out each time.
type naive map[journal.Key][]happening

type happening struct {
	what  string // intend, saw, unpersisted, end
	entry journal.Entry
	runID string
}

func (n naive) add(k journal.Key, h happening) {
	if h.what == "intend" || n.pending(k) != nil {
		n[k] = append(n[k], h)
	}
}

// pending works out one setting from its history since it last ended.
func (n naive) pending(k journal.Key) *journal.Pending {
	history := n[k]
	for i, h := range slices.Backward(history) {
		if h.what == "end" {
			history = history[i+1:]
			break
		}
	}
	if len(history) == 0 {
		return nil
	}
	first := history[0]
	p := &journal.Pending{Key: k, Old: first.entry.Old, RunID: first.runID, Since: began}
	for _, h := range history {
		if h.what == "intend" {
			p.Sent = h.entry.New
		}
		if !slices.Contains(p.Ours, h.entry.New) {
			p.Ours = append(p.Ours, h.entry.New)
		}
	}
	return p
}

func (n naive) all() []journal.Pending {
	var out []journal.Pending
	for store := range uint64(6) { // in the order that Pending promises
		if p := n.pending(threads(store)); p != nil {
			out = append(out, *p)
		}
	}
	return out
}

func TestAnySequenceGivesWhatTheWholeHistoryGives(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 7))
			path, model := journalPath(t), naive{}
			quick := journal.WithFaults(t, &journal.FaultyDisk{NoSync: true})
			j := mustOpen(t, path, at(began), quick)
			for step := range 300 {
				if rnd.IntN(20) == 0 {
					j = reopen(t, j, path, at(began), quick)
				}
				if rnd.IntN(10) == 0 {
					journal.SetRewriteFrom(t, j, rnd.Int64N(2000))
				}
				must(t, randomStep(rnd, fmt.Sprint("run-", step), j, model))
				got := j.Pending()
				if len(got) == 0 {
					got = nil
				}
				if diff := cmp.Diff(model.all(), got); diff != "" {
					t.Fatalf("step %d (-model +journal):\n%s", step, diff)
				}
			}
		})
	}
}

func randomStep(rnd *rand.Rand, runID string, j *journal.Journal, model naive) error {
	k := threads(rnd.Uint64N(6))
	value := fmt.Sprint(1 + rnd.IntN(4))
	switch rnd.IntN(8) {
	case 0:
		model.add(k, happening{what: "saw", entry: journal.Entry{New: value}})
		return j.SawValue(k, value)
	case 1, 2, 3:
		model.add(k, happening{what: "end"})
		return j.End(journal.ClosedRestored, k)
	}
	entries := []journal.Entry{{Key: k, Old: value, New: fmt.Sprint(1 + rnd.IntN(4))}}
	if other := threads(rnd.Uint64N(6)); other != k {
		entries = append(entries, journal.Entry{Key: other, Old: "9", New: value})
	}
	for _, e := range entries {
		model.add(e.Key, happening{"intend", e, runID})
	}
	return j.Intend(runID, entries)
}
