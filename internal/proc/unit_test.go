package proc_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/proc"
)

func TestOnlyTheDocumentedMovesAreAllowed(t *testing.T) {
	allowed := map[string]bool{
		"starting running": true, "starting exited": true,
		"running stopping": true, "running exited": true,
		"stopping exited": true,
	}
	states := []proc.State{proc.Starting, proc.Running, proc.Stopping, proc.Exited}
	for _, from := range states {
		for _, to := range states {
			move := fmt.Sprintf("%v %v", from, to)
			if got := proc.MayBecome(from, to); got != allowed[move] {
				t.Errorf("%s: allowed %v, want %v", move, got, allowed[move])
			}
		}
	}
}

func TestStatLinesAreReadWhateverTheProgramIsCalled(t *testing.T) {
	const rest = "S 1 42 43 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654321 1 2"
	for _, name := range []string{"br", "my br", "br) S 9 9 9 (", ")(", ""} {
		state, pgrp, session, ticks, err := proc.ParseStat("77 (" + name + ") " + rest)
		if err != nil || state != 'S' || pgrp != 42 || session != 43 || ticks != 987654321 {
			t.Errorf("%q: %c %d %d %d %v", name, state, pgrp, session, ticks, err)
		}
	}
	for _, bad := range []string{"", "77 br S", "77 (br) S 1 2", "77 (br) " + strings.Replace(rest, "42", "x", 1)} {
		if _, _, _, _, err := proc.ParseStat(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestAProcessIsDeadOnlyWhenAllItsThreadsAre(t *testing.T) {
	for name, tt := range map[string]struct {
		state, threads string
		want           bool
	}{
		"runs":                               {"S", "9", false},
		"zombie":                             {"Z", "1", true},
		"being removed":                      {"X", "0", true},
		"killed, a thread is in the kernel":  {"Z", "2", false},
		"waits in the kernel, not interrupt": {"D", "1", false},
	} {
		line := "77 (br) " + tt.state + " 1 77 77 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 " + tt.threads + " 0 987654321 1 2"
		if got, err := proc.Dead(line); got != tt.want || err != nil {
			t.Errorf("%s: dead %v, %v", name, got, err)
		}
	}
}

func TestLinesDoNotDependOnHowTheyArrive(t *testing.T) {
	const text = "a\r\nbb\rccc\n\n\rdddddddddddddddddddd\nend"
	want := []string{"a", "bb", "ccc", "dddddddd", "end"}
	for size := 1; size <= len(text); size++ {
		var got []string
		s := proc.NewLineSplitter(8, func(line []byte) { got = append(got, string(line)) })
		for rest := []byte(text); len(rest) > 0; {
			n := min(size, len(rest))
			_, _ = s.Write(rest[:n])
			rest = rest[n:]
		}
		s.Flush()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("in pieces of %d (-want +got):\n%s", size, diff)
		}
	}
}

func FuzzLinesAreBoundedAndComplete(f *testing.F) {
	f.Add([]byte("one\ntwo\r\nthree"), 3)
	f.Add([]byte("\n\r\n"), 1)
	f.Add(bytes.Repeat([]byte("x"), 100), 7)
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		size = max(1, size%64)
		const limit = 16
		var got []string
		s := proc.NewLineSplitter(limit, func(line []byte) { got = append(got, string(line)) })
		for rest := text; len(rest) > 0; {
			n := min(size, len(rest))
			_, _ = s.Write(rest[:n])
			rest = rest[n:]
		}
		s.Flush()
		var want []string
		for _, line := range strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' || r == '\r' }) {
			want = append(want, line[:min(len(line), limit)])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
