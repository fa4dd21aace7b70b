package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// fileName is the database in a state directory.
const fileName = "state.db"

// busyWait is how long SQLite waits for another connection's write. It is less
// than callTimeout, so that "locked" is said and not "deadline exceeded".
const busyWait = 5 * time.Second

// callTimeout bounds every call, whatever context it gets.
const callTimeout = 15 * time.Second

// openTimeout bounds opening, which looks at every page of the file and may
// have to migrate it: about 100 MB/s, and ten years of nightly runs are 50 MB.
const openTimeout = 5 * time.Minute

var (
	// ErrNotFound says that there is no such run or attempt.
	ErrNotFound = errors.New("not found")
	// ErrNewerSchema says that a later brctl has migrated the file, which is left
	// as it is.
	ErrNewerSchema = errors.New("state database is newer than this brctl")
	// ErrCorrupt says that the file is not an intact SQLite database.
	ErrCorrupt = errors.New("state database is damaged")
)

// DB is the state database of one state directory. Its methods may be called
// concurrently.
type DB struct {
	sql *sql.DB
}

// Options are what opening needs to know.
type Options struct {
	Brctl string           // our version, recorded with each migration
	Now   func() time.Time // nil = time.Now

	migrations []migration // tests add later ones
}

// Open opens the state database of dir for reading and writing, creates it
// (mode 0600) or migrates it where needed, and checks that it is intact.
//
// It returns ErrNewerSchema or ErrCorrupt without having changed the file.
func Open(ctx context.Context, dir string, o Options) (*DB, error) {
	o = o.withDefaults()
	path := filepath.Join(dir, fileName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create state directory: %w", err)
	}
	db, err := openWritable(ctx, path, o)
	if err != nil {
		return nil, fmt.Errorf("open state database %s: %w", path, explain(err))
	}
	return db, nil
}

// OpenReadOnly opens an existing state database for reading; another process
// may be writing to it. It never migrates: an older schema is refused. A missing
// database is fs.ErrNotExist.
func OpenReadOnly(ctx context.Context, dir string, o Options) (*DB, error) {
	o = o.withDefaults()
	path := filepath.Join(dir, fileName)
	have, err := inspect(ctx, path, o)
	if err == nil && have.version < newestOf(o.migrations) {
		err = fmt.Errorf("it has schema %d, older than %d; it is migrated when a run starts", have.version, newestOf(o.migrations))
	}
	if err != nil {
		return nil, fmt.Errorf("open state database %s: %w", path, explain(err))
	}
	db, err := connect(path, "ro")
	if err != nil {
		return nil, err
	}
	return &DB{sql: db}, nil
}

// Close closes the database.
func (db *DB) Close() error { return db.sql.Close() }

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.migrations == nil {
		o.migrations = migrations()
	}
	return o
}

func openWritable(ctx context.Context, path string, o Options) (*DB, error) {
	if err := create(path); err != nil {
		return nil, err
	}
	if _, err := inspect(ctx, path, o); err != nil {
		return nil, err
	}
	db, err := connect(path, "rw")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := migrate(ctx, db, o.migrations, o.Brctl, o.Now()); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &DB{sql: db}, nil
}

// create makes an empty file where there is none: SQLite would create one that
// others can read.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// inspect reads the schema and checks the file without writing to it.
func inspect(ctx context.Context, path string, o Options) (schema, error) {
	if _, err := os.Stat(path); err != nil {
		return schema{}, err
	}
	db, err := connect(path, "ro")
	if err != nil {
		return schema{}, err
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	have, err := readSchema(ctx, db)
	if err != nil {
		return schema{}, err
	}
	if err := refuseNewer(have, o.migrations); err != nil {
		return schema{}, err
	}
	return have, quickCheck(ctx, db)
}

// quickCheck looks at every page of the file.
func quickCheck(ctx context.Context, db *sql.DB) error {
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return fmt.Errorf("check file: %w", err)
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: %s", ErrCorrupt, verdict)
	}
	return nil
}

// connect prepares one connection to path. More would only wait for each other:
// SQLite has one writer, and all calls are short.
func connect(path, mode string) (*sql.DB, error) {
	q := url.Values{"mode": {mode}, "_txlock": {"deferred"}}
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", busyWait.Milliseconds()))
	q.Add("_pragma", "foreign_keys(1)")
	if mode == "rw" {
		q.Set("_txlock", "immediate")
		q.Add("_pragma", "journal_mode(WAL)")
		q.Add("_pragma", "synchronous(FULL)")
	}
	name := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, fmt.Errorf("open sqlite: %w", err)
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// explain adds to SQLite's words what they mean here.
func explain(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff { // the primary code; the rest is detail
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			err = fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
	}
	if errors.Is(err, ErrCorrupt) {
		return fmt.Errorf("%w; move the file away to start with an empty history (settings to restore are not in it)", err)
	}
	return err
}
