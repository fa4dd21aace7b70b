package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/journal"
	"github.com/brctl/brctl/pkg/policy"
)

// sample writes a journal of every operation and returns its bytes with the
// contents that were confirmed at each size.
func sample(t *testing.T) (data []byte, confirmed map[int]journal.Contents) {
	t.Helper()
	path := journalPath(t)
	j := mustOpen(t, path, at(began))
	confirmed = map[int]journal.Contents{}
	steps := []func() error{
		func() error { return j.Connect(conn()) },
		func() error { return j.Intend("run-1", []journal.Entry{entry(1, "8", "4"), entry(2, "16", "4")}) },
		func() error { return j.SawValue(threads(2), "3") },
		func() error { return j.ChildStarted(policy.ChildRef{PID: 1, StartTicks: 2, BootID: "b"}) },
		func() error { return j.Intend("run-1", []journal.Entry{entry(1, "4", "2")}) },
		func() error { return j.ChildGone(policy.ChildRef{PID: 1, StartTicks: 2, BootID: "b"}) },
		func() error { return j.End(journal.ClosedForeign, threads(2)) },
	}
	for _, step := range steps {
		must(t, step())
		var err error
		data, err = os.ReadFile(path)
		must(t, err)
		confirmed[len(data)] = j.Contents()
	}
	return data, confirmed
}

func TestAJournalCutAtAnyByteKeepsEverythingConfirmedBefore(t *testing.T) {
	data, confirmed := sample(t)
	path := journalPath(t)
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	quick := journal.WithFaults(t, &journal.FaultyDisk{NoSync: true})
	want := journal.Contents{}
	for size := range len(data) + 1 {
		if c, ok := confirmed[size]; ok {
			want = c
		}
		// A record without its newline is complete and may be kept.
		complete := want
		if c, ok := confirmed[size+1]; ok {
			complete = c
		}
		if err := os.Remove(path); err != nil && size > 0 {
			t.Fatal(err)
		}
		must(t, os.WriteFile(path, data[:size], 0o600))
		j, err := journal.Open(path, quick)
		if err != nil {
			t.Fatalf("cut at %d: %v", size, err)
		}
		got := j.Contents()
		_, whole := confirmed[size]
		if !whole && len(got.Notes) == 0 {
			t.Errorf("cut at %d: no note", size)
		}
		if diff := cmp.Diff(withoutNotes(complete), withoutNotes(got)); diff != "" {
			t.Fatalf("cut at %d (-want +got):\n%s", size, diff)
		}
		if size%7 > 0 { // the rest is slow and the same for most sizes
			must(t, j.Close())
			continue
		}
		must(t, j.Intend("later", []journal.Entry{entry(3, "8", "4")}))
		after := j.Contents()
		must(t, j.Close())
		again, err := journal.Read(path)
		if err != nil {
			t.Fatalf("cut at %d, after a later record: %v", size, err)
		}
		if diff := cmp.Diff(withoutNotes(after), withoutNotes(again)); diff != "" {
			t.Fatalf("cut at %d, after a later record (-want +got):\n%s", size, diff)
		}
	}
}

func withoutNotes(c journal.Contents) journal.Contents {
	c.Notes = nil
	if len(c.Pending) == 0 {
		c.Pending = nil
	}
	if len(c.Children) == 0 {
		c.Children = nil
	}
	return c
}

func TestNoFlippedBitIsBelieved(t *testing.T) {
	data, confirmed := sample(t)
	want := withoutNotes(confirmed[len(data)])
	for i := 0; i < len(data)*8; i += 5 { // each position in a byte, in turn
		flipped := append([]byte(nil), data...)
		flipped[i/8] ^= 1 << (i % 8)
		got, err := journal.ReadBytes(flipped)
		var corrupt *journal.CorruptError
		switch {
		case i/8 == len(data)-1: // the last newline: the record before it is whole
			if err != nil || len(got.Notes) == 0 || !cmp.Equal(want, withoutNotes(got)) {
				t.Fatalf("bit %d: %v, %+v", i, err, got)
			}
		case !errors.As(err, &corrupt):
			t.Fatalf("bit %d of byte %d (%q): %v, want CorruptError", i%8, i/8, data[i/8], err)
		}
	}
}

func TestADamagedRecordHidesNoneAfterIt(t *testing.T) {
	data, _ := sample(t)
	path := journalPath(t)
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	text := strings.Split(string(data), "\n")
	text[1] = strings.Replace(text[1], `"old":"16"`, `"old":"61"`, 1) // the first intention
	damaged := strings.Join(text, "\n")
	must(t, os.WriteFile(path, []byte(damaged), 0o600))

	_, err := journal.Open(path)
	var corrupt *journal.CorruptError
	if !errors.As(err, &corrupt) {
		t.Fatalf("open: %v, want CorruptError", err)
	}
	if diff := cmp.Diff([]int{2}, corrupt.Lines); diff != "" {
		t.Errorf("damaged lines (-want +got):\n%s", diff)
	}
	if c := corrupt.Contents; len(c.Pending) != 1 || c.Pending[0].Key != threads(1) || c.Conn.ClusterID != conn().ClusterID {
		t.Errorf("readable contents: %+v, want store 1 and the connection", c)
	}
	if kept, err := os.ReadFile(path); err != nil || string(kept) != damaged {
		t.Errorf("open changed the damaged file (%v)", err)
	}

	j, err := journal.Salvage(path, at(began))
	must(t, err)
	must(t, j.Intend("run-9", []journal.Entry{entry(5, "8", "4")}))
	must(t, j.Close())
	c, err := journal.Read(path)
	if err != nil || len(c.Pending) != 2 {
		t.Errorf("salvaged journal: %+v, %v, want stores 1 and 5", c.Pending, err)
	}
	copied, err := os.ReadFile(path + ".damaged-20260301T020000Z")
	if err != nil || string(copied) != damaged {
		t.Errorf("copy of the damaged file: %v", err)
	}
}

func TestDamageIsToldFromTornAndNewerFiles(t *testing.T) {
	data, _ := sample(t)
	whole := string(data)
	newer := journal.Seal(2, `{"op":"from the future"}`)
	tests := map[string]struct {
		data      string
		wantError string
		wantNote  string
	}{
		"empty":                       {"", "", "the journal is empty"},
		"half a line":                 {whole[:30], "", "only line is cut short (30 bytes)"},
		"zeros only":                  {strings.Repeat("\x00", 512), "", "only line is cut short (512 bytes)"},
		"zeros after the last record": {whole + strings.Repeat("\x00", 512), "", "last write was cut short (512 bytes)"},
		"half JSON at the end":        {whole + `{"v":1,"crc":"0`, "", "last write was cut short"},
		"a line of another kind":      {whole + "hello\n", "damaged at line 8; 1 settings", ""},
		"an unknown operation":        {whole + journal.Seal(1, `{"op":"dance"}`) + "\n", "damaged at line 8", ""},
		"an unknown operation, torn":  {whole + journal.Seal(1, `{"op":"dance"}`), "", "last write was cut short"},
		"a newer format":              {whole + newer + "\n", "has format 2, this brctl knows formats up to 1", ""},
		"a newer format, torn":        {whole + newer, "has format 2", ""},
		"blank lines":                 {"\n\n" + whole, "damaged at line 1, 2", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "1.journal")
			must(t, os.WriteFile(path, []byte(tt.data), 0o600))
			c, err := journal.Read(path)
			if tt.wantError == "" && err != nil || tt.wantError != "" && (err == nil || !strings.Contains(err.Error(), tt.wantError)) {
				t.Errorf("error %v, want %q", err, tt.wantError)
			}
			if notes := strings.Join(c.Notes, "; "); !strings.Contains(notes, tt.wantNote) {
				t.Errorf("notes %q, want %q", notes, tt.wantNote)
			}
			if _, err := journal.Salvage(path); (err != nil) != strings.Contains(tt.wantError, "format 2") {
				t.Errorf("salvage: %v", err)
			}
		})
	}
}

// TestAFailedOperationLosesNothingConfirmed fails every operation of the disk
// at its every call, one at a time, and compares what is on disk afterwards
// with what was confirmed.
func TestAFailedOperationLosesNothingConfirmed(t *testing.T) {
	for _, operation := range []string{"create", "append", "rename", "syncdir", "write", "sync"} {
		for call := 1; ; call++ {
			failed := failOnce(t, operation, call)
			if !failed {
				if call == 1 {
					t.Errorf("%s never happens", operation)
				}
				break
			}
		}
	}
}

func failOnce(t *testing.T, operation string, call int) (failed bool) {
	t.Helper()
	path := journalPath(t)
	d := &journal.FaultyDisk{Fail: func(op string) error {
		if op == operation {
			if call--; call == 0 {
				failed = true
				return syscall.ENOSPC
			}
		}
		return nil
	}}
	what := fmt.Sprintf("%s, call %d", operation, call)
	pending := map[journal.Key]string{} // confirmed
	for range 2 {                       // opened twice, so that append happens
		j, err := journal.Open(path, journal.WithFaults(t, d))
		if err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("%s: %v", what, err)
			}
			continue
		}
		for store := range uint64(4) {
			if j.Intend("run", []journal.Entry{entry(store, "8", "4")}) == nil {
				pending[threads(store)] = "8"
			}
		}
		// Where it is unknown whether the end is on disk, both are right.
		if err := j.End(journal.ClosedRestored, threads(1)); err == nil || errors.Is(err, journal.ErrBroken) {
			delete(pending, threads(1))
		}
		must(t, j.Close())
	}
	c, err := journal.Read(path)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for _, p := range c.Pending {
		delete(pending, p.Key)
	}
	if len(pending) > 0 {
		t.Errorf("%s: forgotten: %v", what, pending)
	}
	return failed
}

// thatFills is a disk without room for more while *full is true.
func thatFills(full *bool) *journal.FaultyDisk {
	return &journal.FaultyDisk{Fail: func(op string) error {
		if *full && (op == "write" || op == "create") {
			return syscall.ENOSPC
		}
		return nil
	}}
}

func TestAfterAFullDiskTheJournalGoesOn(t *testing.T) {
	path := journalPath(t)
	full := false
	j := mustOpen(t, path, journal.WithFaults(t, thatFills(&full)))
	must(t, j.Intend("run", []journal.Entry{entry(1, "8", "4")}))
	full = true
	if err := j.Intend("run", []journal.Entry{entry(2, "8", "4")}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("intend on a full disk: %v, want ENOSPC", err)
	}
	if got := len(j.Pending()); got != 1 {
		t.Errorf("%d pending after the refused record, want 1", got)
	}
	full = false
	must(t, j.Intend("run", []journal.Entry{entry(3, "8", "4")}))
	c, err := journal.Read(path)
	if err != nil || len(c.Pending) != 2 || len(c.Notes) != 0 {
		t.Errorf("read: %+v, %v, want stores 1 and 3 and no notes", c, err)
	}
}

func TestNothingIsConfirmedAfterAFailedSync(t *testing.T) {
	records := map[string]func(*journal.Journal) error{
		"sync": func(j *journal.Journal) error { return j.Intend("run", []journal.Entry{entry(2, "8", "4")}) },
		// The last end makes the file one line again, by a rename.
		"syncdir": func(j *journal.Journal) error { return j.End(journal.ClosedRestored, threads(1)) },
	}
	for operation, write := range records {
		t.Run(operation, func(t *testing.T) {
			fail := false
			d := &journal.FaultyDisk{Fail: func(op string) error {
				if fail && op == operation {
					fail = false
					return syscall.EIO
				}
				return nil
			}}
			path := journalPath(t)
			j := mustOpen(t, path, journal.WithFaults(t, d))
			must(t, j.Intend("run", []journal.Entry{entry(1, "8", "4")}))
			fail = true
			for range 2 {
				if err := write(j); !errors.Is(err, journal.ErrBroken) {
					t.Errorf("record: %v, want ErrBroken", err)
				}
			}
			j = reopen(t, j, path)
			must(t, j.Intend("run", []journal.Entry{entry(3, "8", "4")}))
		})
	}
}

func TestARealFullFileSystemLosesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=32k"); err != nil {
		t.Skipf("skip: no tmpfs: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	path := filepath.Join(dir, "1.journal")
	j := mustOpen(t, path)
	confirmed := 0
	for store := range uint64(1000) {
		err := j.Intend("run", []journal.Entry{entry(store, "8", "4")})
		if errors.Is(err, syscall.ENOSPC) {
			break
		}
		must(t, err)
		confirmed++
	}
	if confirmed == 0 || confirmed == 1000 {
		t.Fatalf("%d records fitted, want the disk to fill", confirmed)
	}
	if got := len(reopen(t, j, path).Pending()); got != confirmed {
		t.Errorf("%d pending, want the %d confirmed", got, confirmed)
	}
}

func TestEachRecordIsSyncedBeforeItIsConfirmed(t *testing.T) {
	var operations []string
	d := &journal.FaultyDisk{Fail: func(op string) error {
		operations = append(operations, op)
		return nil
	}}
	j := mustOpen(t, journalPath(t), journal.WithFaults(t, d))
	records := []struct {
		name  string
		write func() error
		want  []string
	}{
		{"the first makes the file", func() error { return j.Intend("run", []journal.Entry{entry(1, "8", "4")}) },
			[]string{"create", "write", "sync", "rename", "syncdir"}},
		{"a further one is added", func() error { return j.Intend("run", []journal.Entry{entry(2, "8", "4")}) },
			[]string{"write", "sync"}},
		{"an end is added", func() error { return j.End(journal.ClosedGone, threads(1)) },
			[]string{"write", "sync"}},
		{"the last end makes the file small", func() error { return j.End(journal.ClosedGone, threads(2)) },
			[]string{"create", "write", "sync", "rename", "syncdir"}},
	}
	for _, r := range records {
		operations = nil
		must(t, r.write())
		if diff := cmp.Diff(r.want, operations); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.name, diff)
		}
	}
}

func BenchmarkIntendForAThousandStores(b *testing.B) {
	j, err := journal.Open(journal.Path(b.TempDir(), 7))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	entries := make([]journal.Entry, 3000)
	for i := range entries {
		entries[i] = entry(uint64(i), "8", "")
	}
	for n := 0; b.Loop(); n++ {
		for i := range entries {
			entries[i].New = fmt.Sprint(n % 16)
		}
		if err := j.Intend("run", entries); err != nil {
			b.Fatal(err)
		}
	}
}
