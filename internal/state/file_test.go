package state_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/state"
	"github.com/brctl/brctl/pkg/policy"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}

// tables is the schema of a file as SQLite keeps it.
func tables(t *testing.T, db *state.DB) []string {
	t.Helper()
	rows, err := state.SQL(t, db).Query("SELECT name || ': ' || sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
	must(t, err)
	defer func() { _ = rows.Close() }()
	var out []string
	for rows.Next() {
		var s string
		must(t, rows.Scan(&s))
		out = append(out, s)
	}
	must(t, rows.Err())
	return out
}

// TestAFileOfSchema1IsReadAndMigrated uses testdata/v1.sql, the dump of a file
// that schema 1 was released with. It never changes.
func TestAFileOfSchema1IsReadAndMigrated(t *testing.T) {
	dir := t.TempDir()
	state.Import(t, dir, readFile(t, "testdata/v1.sql"))
	want := fullRun()

	db := open(t, dir)
	got, err := db.Run(t.Context(), want.ID)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run of schema 1 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(tables(t, open(t, t.TempDir())), tables(t, db)); diff != "" {
		t.Errorf("schema of a new file and of a migrated one (-new +migrated):\n%s", diff)
	}
	must(t, db.Close())

	next := state.WithMigration(t, options(), "ALTER TABLE runs ADD COLUMN note TEXT NOT NULL DEFAULT 'none';")
	db, err = state.Open(t.Context(), dir, next)
	must(t, err)
	defer func() { _ = db.Close() }()
	var note, steps string
	must(t, state.SQL(t, db).QueryRow("SELECT note, (SELECT group_concat(version || ' ' || brctl) FROM schema_versions) FROM runs").Scan(&note, &steps))
	if note != "none" || steps != "1 v1.0.0,2 v1.2.3" {
		t.Errorf("note %q, steps %q", note, steps)
	}
}

func TestAMigrationThatFailsLeavesTheFileAsItWas(t *testing.T) {
	dir := t.TempDir()
	state.Import(t, dir, readFile(t, "testdata/v1.sql"))
	bad := state.WithMigration(t, options(), "ALTER TABLE runs ADD COLUMN note TEXT; INSERT INTO nowhere VALUES (1);")
	_, err := state.Open(t.Context(), dir, bad)
	if err == nil || !strings.Contains(err.Error(), "migrate to schema 2") {
		t.Fatalf("open: %v, want the failed migration named", err)
	}
	db := open(t, dir)
	if schema := strings.Join(tables(t, db), "\n"); strings.Contains(schema, "note") {
		t.Errorf("half a migration is left:\n%s", schema)
	}
	if _, err := db.Run(t.Context(), fullRun().ID); err != nil {
		t.Error(err)
	}
}

func TestANewerFileIsRefusedAndNotTouched(t *testing.T) {
	dir := t.TempDir()
	newer := state.WithMigration(t, options(), "CREATE TABLE later (x TEXT) STRICT;")
	newer.Brctl = "v9.1.0"
	db, err := state.Open(t.Context(), dir, newer)
	must(t, err)
	must(t, db.Close())
	before := readFile(t, filepath.Join(dir, "state.db"))

	for name, openIt := range openers() {
		_, err := openIt(t.Context(), dir, options())
		if !errors.Is(err, state.ErrNewerSchema) {
			t.Fatalf("%s: %v, want ErrNewerSchema", name, err)
		}
		for _, fact := range []string{"schema 2", "applied by brctl v9.1.0", "up to 1", "`brctl settings` works"} {
			if !strings.Contains(err.Error(), fact) {
				t.Errorf("%s: %q does not say %q", name, err, fact)
			}
		}
	}
	if after := readFile(t, filepath.Join(dir, "state.db")); after != before {
		t.Error("the refused file has changed")
	}
}

func openers() map[string]func(context.Context, string, state.Options) (*state.DB, error) {
	return map[string]func(context.Context, string, state.Options) (*state.DB, error){
		"open": state.Open, "open read-only": state.OpenReadOnly,
	}
}

func TestADamagedFileIsCalledDamagedAndNotTouched(t *testing.T) {
	whole := t.TempDir()
	db := open(t, whole)
	for n := range 200 {
		run := fullRun()
		run.ID = id(n)
		must(t, db.CreateRun(t.Context(), run))
	}
	must(t, db.Close())
	good := readFile(t, filepath.Join(whole, "state.db"))

	damaged := map[string]string{
		"text":               strings.Repeat("this is not a database. ", 400),
		"short text":         "hello",
		"cut in half":        good[:len(good)/2],
		"a page overwritten": good[:8192] + strings.Repeat("\xa5", 4096) + good[12288:],
	}
	for name, data := range damaged {
		for how, openIt := range openers() {
			t.Run(name+", "+how, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "state.db")
				must(t, os.WriteFile(path, []byte(data), 0o600))
				_, err := openIt(t.Context(), dir, options())
				if !errors.Is(err, state.ErrCorrupt) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "move the file away") {
					t.Errorf("%v, want ErrCorrupt with the path and what to do", err)
				}
				if readFile(t, path) != data {
					t.Error("the damaged file has changed")
				}
			})
		}
	}
}

func TestTheDatabaseOfAnotherProgramIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	state.Import(t, dir, "CREATE TABLE theirs (x TEXT);")
	before := readFile(t, filepath.Join(dir, "state.db"))
	for name, openIt := range openers() {
		if _, err := openIt(t.Context(), dir, options()); err == nil || !strings.Contains(err.Error(), "another program") {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
	if readFile(t, filepath.Join(dir, "state.db")) != before {
		t.Error("the file has changed")
	}
}

func TestReadOnlyNeitherCreatesNorMigratesNorWrites(t *testing.T) {
	dir := t.TempDir()
	if _, err := state.OpenReadOnly(t.Context(), dir, options()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v, want ErrNotExist", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("directory has %v, %v, want nothing", entries, err)
	}
	state.Import(t, dir, readFile(t, "testdata/v1.sql"))
	next := state.WithMigration(t, options(), "CREATE TABLE later (x TEXT) STRICT;")
	if _, err := state.OpenReadOnly(t.Context(), dir, next); err == nil || !strings.Contains(err.Error(), "schema 1, older than 2") {
		t.Errorf("older file: %v, want it refused", err)
	}
	db, err := state.OpenReadOnly(t.Context(), dir, options())
	must(t, err)
	defer func() { _ = db.Close() }()
	if err := db.CreateRun(t.Context(), queued(5, "nightly", policy.RunQueued)); err == nil {
		t.Error("a read-only database was written to")
	}
}

func TestAReaderSeesEachCommitWhileItIsWrittenTo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "odd ?name#%20")
	db := open(t, dir)
	must(t, db.CreateRun(t.Context(), queued(1, "nightly", policy.RunRunning)))
	reader, err := state.OpenReadOnly(t.Context(), dir, options())
	must(t, err)
	defer func() { _ = reader.Close() }()

	const events = 200
	var wg sync.WaitGroup
	for range 2 { // two writers of one process, and one of another connection
		wg.Go(func() { appendEvents(t, db, events) })
	}
	other := open(t, dir)
	wg.Go(func() { appendEvents(t, other, events) })
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for seen, running := 0, true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		got, err := reader.Events(t.Context(), id(1), 0)
		must(t, err)
		if len(got) < seen || len(got) > 0 && got[len(got)-1].Seq != int64(len(got)) {
			t.Fatalf("saw %d events after %d, the last %+v", len(got), seen, got[len(got)-1])
		}
		seen = len(got)
	}
	if got, err := reader.Events(t.Context(), id(1), 0); err != nil || len(got) != 3*events {
		t.Errorf("%d events, %v, want %d", len(got), err, 3*events)
	}
}

func appendEvents(t *testing.T, db *state.DB, n int) {
	t.Helper()
	for range n {
		if _, err := db.AppendEvent(context.Background(), id(1), policy.Event{At: began, Kind: "tick"}); err != nil {
			t.Error(err)
			return
		}
	}
}

// TestWhatWasAcknowledgedSurvivesAKill has a child write events and report each
// acknowledged one, kills it at some moment and looks for all of them.
func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	for _, after := range []int{1, 17, 60} {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "STATE_TEST_WRITE="+dir)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		acknowledged := int64(0)
		for acknowledged < int64(after) {
			if _, err := fmt.Fscanln(out, &acknowledged); err != nil {
				t.Fatalf("child ended after %d: %v", acknowledged, err)
			}
		}
		must(t, cmd.Process.Signal(syscall.SIGKILL))
		for { // what it said before the signal reached it
			var seq int64
			if _, err := fmt.Fscanln(out, &seq); err != nil {
				break
			}
			acknowledged = seq
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("child: %v, want it killed", err)
		}
		got, err := open(t, dir).Events(t.Context(), id(1), 0)
		must(t, err)
		if n := int64(len(got)); n < acknowledged || n > acknowledged+1 {
			t.Errorf("%d events, want the %d acknowledged and at most one more", n, acknowledged)
		}
	}
}

func TestMain(m *testing.M) {
	if dir := os.Getenv("STATE_TEST_WRITE"); dir != "" {
		writeForever(dir)
	}
	if dir := os.Getenv("STATE_TEST_LOCK"); dir != "" {
		lockForever(dir)
	}
	os.Exit(m.Run())
}

func writeForever(dir string) {
	ctx := context.Background()
	db, err := state.Open(ctx, dir, options())
	if err == nil {
		err = db.CreateRun(ctx, queued(1, "nightly", policy.RunRunning))
	}
	for err == nil {
		var seq int64
		if seq, err = db.AppendEvent(ctx, id(1), policy.Event{At: began, Kind: "tick"}); err == nil {
			fmt.Println(seq)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func lockForever(dir string) {
	if _, err := state.Lock(dir); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("locked")
	select {}
}

func TestASecondProcessIsToldWhoHasTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "STATE_TEST_LOCK="+dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var word string
	if _, err := fmt.Fscanln(out, &word); err != nil || word != "locked" {
		t.Fatalf("child said %q, %v", word, err)
	}
	_, err = state.Lock(dir)
	var locked *state.LockedError
	if !errors.As(err, &locked) || locked.PID != cmd.Process.Pid || locked.Dir != dir {
		t.Errorf("lock: %v, want LockedError with pid %d", err, cmd.Process.Pid)
	}
	must(t, cmd.Process.Signal(syscall.SIGKILL))
	if err := cmd.Wait(); err == nil {
		t.Error("child ended by itself, want it killed")
	}
	for range 2 { // after a kill, and after an orderly end
		l, err := state.Lock(dir)
		must(t, err)
		must(t, l.Unlock())
	}
}

func TestAFullFileSaysSoAndKeepsWhatItHad(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	must(t, db.CreateRun(t.Context(), queued(1, "nightly", policy.RunRunning)))
	limit := state.SQL(t, db)
	var pages int
	must(t, limit.QueryRow("PRAGMA page_count").Scan(&pages))
	must(t, limit.QueryRow(fmt.Sprintf("PRAGMA max_page_count = %d", pages+4)).Scan(&pages))

	acknowledged := 0
	var err error
	for err == nil && acknowledged < 10000 {
		if _, err = db.AppendEvent(t.Context(), id(1), policy.Event{At: began, Kind: "tick", Message: strings.Repeat("x", 500)}); err == nil {
			acknowledged++
		}
	}
	if err == nil || !strings.Contains(err.Error(), "full") || acknowledged == 0 {
		t.Fatalf("after %d events: %v, want a full database", acknowledged, err)
	}
	must(t, limit.QueryRow("PRAGMA max_page_count = 100000").Scan(&pages))
	if _, err := db.AppendEvent(t.Context(), id(1), policy.Event{At: began, Kind: "again"}); err != nil {
		t.Errorf("after there was room again: %v", err)
	}
	must(t, db.Close())
	got, err := open(t, dir).Events(t.Context(), id(1), 0)
	if err != nil || len(got) != acknowledged+1 {
		t.Errorf("%d events, %v, want %d", len(got), err, acknowledged+1)
	}
}

func TestARealFullFileSystemKeepsWhatWasAcknowledged(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("skip: no tmpfs: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	db := open(t, dir)
	must(t, db.CreateRun(t.Context(), queued(1, "nightly", policy.RunRunning)))
	acknowledged := 0
	var err error
	for err == nil && acknowledged < 10000 {
		if _, err = db.AppendEvent(t.Context(), id(1), policy.Event{At: began, Kind: "tick", Message: strings.Repeat("x", 500)}); err == nil {
			acknowledged++
		}
	}
	if err == nil || !strings.Contains(err.Error(), "full") || acknowledged == 0 {
		t.Fatalf("after %d events: %v, want a full disk", acknowledged, err)
	}
	_ = db.Close() // there is no room to tidy up in
	got, err := open(t, dir).Events(t.Context(), id(1), 0)
	if err != nil || len(got) != acknowledged {
		t.Errorf("%d events, %v, want the %d acknowledged", len(got), err, acknowledged)
	}
}

func TestManyMayOpenANewFileAtOnce(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			db, err := state.Open(context.Background(), dir, options())
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = db.Close() }()
			if err := db.CreateRun(context.Background(), queued(n, "nightly", policy.RunQueued)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if runs, err := open(t, dir).Runs(t.Context(), state.Filter{}); err != nil || len(runs) != 8 {
		t.Errorf("%d runs, %v, want 8", len(runs), err)
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	db := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.CreateRun(ctx, queued(1, "nightly", policy.RunQueued)); !errors.Is(err, context.Canceled) {
		t.Errorf("create: %v, want Canceled", err)
	}
	if runs, err := db.Runs(t.Context(), state.Filter{}); err != nil || len(runs) != 0 {
		t.Errorf("runs %v, %v, want none", runs, err)
	}
}

func TestCommitsAreDurableAndTheFilePrivate(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	must(t, db.CreateRun(t.Context(), queued(1, "nightly", policy.RunQueued)))
	pragmas := map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "5000"}
	for name, want := range pragmas {
		var got string
		must(t, state.SQL(t, db).QueryRow("PRAGMA "+name).Scan(&got))
		if got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		info, err := e.Info()
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 600", e.Name(), info.Mode().Perm())
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"state.db", "state.db-shm", "state.db-wal"}, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// BenchmarkOpenAfterTenYears opens a file of ten years of nightly runs, each
// with 100 events; opening looks at every page.
func BenchmarkOpenAfterTenYears(b *testing.B) {
	dir := b.TempDir()
	ctx := context.Background()
	db, err := state.Open(ctx, dir, options())
	if err != nil {
		b.Fatal(err)
	}
	if err := db.CreateRun(ctx, fullRun()); err != nil {
		b.Fatal(err)
	}
	const fill = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 365000)
		INSERT INTO events SELECT id, i, created_at, 'progress', 'Full Backup 42 %, 1.2 GB/s, 3 of 3 stores',
			'{"ratio": 0.42, "threads": 48}' FROM n, runs`
	if _, err := state.SQL(b, db).Exec(fill); err != nil {
		b.Fatal(err)
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "state.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		db, err := state.Open(ctx, dir, options())
		if err != nil {
			b.Fatal(err)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
