package state_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
