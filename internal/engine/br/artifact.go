package br

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	backuppb "github.com/pingcap/kvproto/pkg/brpb"

	"github.com/brctl/brctl/pkg/policy"
)

// What Confirm may find instead of a backup.
var (
	// ErrNoBackup means that there is no backupmeta: br writes it last, so the
	// backup is not complete.
	ErrNoBackup = errors.New("no backupmeta at the target")
	// ErrEmptyBackup means that the backup is well formed and holds no data
	// file: br calls it a success when a filter matches nothing.
	ErrEmptyBackup = errors.New("the backup holds no data")
	// ErrDamagedBackup means that the metadata is there and cannot be read.
	ErrDamagedBackup = errors.New("the backup's metadata is damaged")
	// ErrEncryptedBackup means that an index of the metadata is encrypted.
	ErrEncryptedBackup = errors.New("the backup's metadata is encrypted; it can be read only with its key")
)

const metaName = "backupmeta"

// Numbers of the fields of BackupMeta and MetaFile that are read (brpb.proto).
const (
	metaClusterID      = 1
	metaClusterVersion = 2
	metaFiles          = 4 // version 1: data files stand here
	metaEndVersion     = 6
	metaSchemas        = 7
	metaBRVersion      = 11
	metaFormat         = 12 // 0: version 1; 1: version 2, with indexes
	metaFileIndex      = 13 // version 2: data files stand in the leaves of this
	metaSchemaIndex    = 14
	metaBackupSize     = 25

	indexMetaFiles = 1 // the next level
	indexDataFiles = 2
	indexSchemas   = 3
)

// Limits on what is held in memory or followed. A File is a few hundred bytes;
// br writes one level of index.
const (
	maxFileMessage = 1 << 20
	maxIndexDepth  = 4
)

// Confirm reads a finished backup back: backupmeta, and every leaf of its
// indexes with its SHA-256. It proves that the metadata is whole, that it names
// at least one data file, and says of which stores files are visible here. The
// data files are neither read nor measured, only looked for by name: a store is
// missing when any one of its files is not seen, and store 0 stands for files
// whose name does not tell the store.
//
// The error wraps ErrNoBackup, ErrDamagedBackup, ErrEncryptedBackup, or
// ErrEmptyBackup; with the last the artifact is valid.
func (e *Engine) Confirm(ctx context.Context, storageURL string) (policy.Artifact, error) {
	dir, err := e.localPath(storageURL)
	if err != nil {
		return policy.Artifact{}, fmt.Errorf("confirm backup: %w", err)
	}
	a, err := within(ctx, e.config.ConfirmTimeout, func(ctx context.Context) (policy.Artifact, error) { return confirm(ctx, dir) })
	a.StorageURL = storageURL
	if err != nil {
		return a, fmt.Errorf("confirm backup: %w", err)
	}
	return a, nil
}

func confirm(ctx context.Context, dir string) (policy.Artifact, error) {
	m := metaReader{dir: dir, files: newDataFiles()}
	if err := m.readRoot(ctx); err != nil {
		return policy.Artifact{}, err
	}
	if err := m.files.list(ctx, dir); err != nil {
		return m.artifact, err
	}
	m.artifact.Stores, m.artifact.MissingStores = sortedKeys(m.files.visible), m.files.missing()
	if m.artifact.Ranges == 0 {
		return m.artifact, ErrEmptyBackup
	}
	return m.artifact, nil
}

// metaReader collects what the metadata of one backup says.
type metaReader struct {
	dir       string
	artifact  policy.Artifact
	files     *dataFiles
	dataBytes uint64
	indexed   bool // format version 2
	schemaIdx bool
}

// readRoot reads backupmeta.
func (m *metaReader) readRoot(ctx context.Context) error {
	f, err := os.Open(filepath.Join(m.dir, metaName))
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNoBackup
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", metaName, err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("open %s: %w", metaName, err)
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return fmt.Errorf("%w: %s is empty or not a file", ErrDamagedBackup, metaName)
	}
	if err := walkFields(f, info.Size(), func(w wireField) error { return m.rootField(ctx, w) }); err != nil {
		return m.rootFault(err)
	}
	return m.checkWhole()
}

// rootFault tells a cut backupmeta from one that is something else. Encrypted
// metadata is noise, with nothing in it that says so.
func (m *metaReader) rootFault(err error) error {
	switch {
	case errors.Is(err, ErrDamagedBackup), errors.Is(err, ErrEncryptedBackup):
		return err
	case errors.Is(err, errTruncated) && m.artifact.ClusterVersion != "":
		return fmt.Errorf("%w: %s is truncated", ErrDamagedBackup, metaName)
	case errors.Is(err, errTruncated), errors.Is(err, errNotProto):
		return fmt.Errorf("%w: %s is not br's, or it is encrypted: %w", ErrDamagedBackup, metaName, err)
	}
	return fmt.Errorf("read %s: %w", metaName, err)
}

// checkWhole catches a backupmeta that was cut between two fields: the message
// is well formed then.
func (m *metaReader) checkWhole() error {
	if m.artifact.BackupTS == 0 {
		return fmt.Errorf("%w: %s has no end version", ErrDamagedBackup, metaName)
	}
	if m.indexed && m.artifact.Ranges > 0 && !m.schemaIdx {
		return fmt.Errorf("%w: %s has data but no index of schemas; it is truncated", ErrDamagedBackup, metaName)
	}
	if m.artifact.SizeBytes == 0 { // releases that do not record it
		m.artifact.SizeBytes = m.dataBytes
	}
	return nil
}

func (m *metaReader) rootField(ctx context.Context, w wireField) error {
	switch w.num {
	case metaClusterID, metaEndVersion, metaFormat, metaBackupSize:
		m.rootNumber(w)
		return w.want(wireVarint)
	case metaClusterVersion, metaBRVersion, metaFiles, metaSchemas, metaSchemaIndex, metaFileIndex:
		if err := w.want(wireBytes); err != nil {
			return err
		}
	}
	switch w.num {
	case metaClusterVersion:
		return readText(w, &m.artifact.ClusterVersion)
	case metaBRVersion:
		return readRelease(w, &m.artifact.EngineVersion)
	case metaFiles:
		return m.dataFile(w)
	case metaSchemas:
		m.artifact.Schemas++
	case metaSchemaIndex:
		m.schemaIdx = true
		return m.index(ctx, w.body, w.length, 0)
	case metaFileIndex:
		return m.index(ctx, w.body, w.length, 0)
	}
	return nil
}

func (m *metaReader) rootNumber(w wireField) {
	switch w.num {
	case metaClusterID:
		m.artifact.ClusterID = w.value
	case metaEndVersion:
		m.artifact.BackupTS = policy.TS(w.value)
	case metaFormat:
		m.indexed = w.value != 0
	case metaBackupSize:
		m.artifact.SizeBytes = w.value
	}
}

// index reads one MetaFile, which is an index of further ones or a leaf.
func (m *metaReader) index(ctx context.Context, r io.Reader, size int64, depth int) error {
	return walkFields(r, size, func(w wireField) error {
		if w.num <= indexSchemas {
			if err := w.want(wireBytes); err != nil {
				return err
			}
		}
		switch w.num {
		case indexMetaFiles:
			return m.child(ctx, w, depth+1)
		case indexDataFiles:
			return m.dataFile(w)
		case indexSchemas:
			m.artifact.Schemas++
		}
		return nil
	})
}

// child reads the file that an index names and checks its SHA-256, which br
// takes over the plain content.
func (m *metaReader) child(ctx context.Context, w wireField, depth int) error {
	entry, err := readFile(w)
	if err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	switch {
	case len(entry.CipherIv) > 0:
		return fmt.Errorf("%s: %w", entry.Name, ErrEncryptedBackup)
	case depth > maxIndexDepth || !filepath.IsLocal(entry.Name):
		return fmt.Errorf("%w: index entry %q at depth %d", ErrDamagedBackup, bounded(entry.Name), depth)
	}
	f, err := os.Open(filepath.Join(m.dir, entry.Name))
	if err != nil {
		return fmt.Errorf("%w: index file: %w", ErrDamagedBackup, err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("%w: index file: %w", ErrDamagedBackup, err)
	}
	sum := sha256.New()
	if err := m.index(ctx, io.TeeReader(f, sum), info.Size(), depth); err != nil {
		if errors.Is(err, errTruncated) || errors.Is(err, errNotProto) {
			err = fmt.Errorf("%w: %w", ErrDamagedBackup, err)
		}
		return fmt.Errorf("read %s: %w", entry.Name, err)
	}
	if !bytes.Equal(sum.Sum(nil), entry.Sha256) {
		return fmt.Errorf("%w: %s does not have its SHA-256", ErrDamagedBackup, entry.Name)
	}
	return nil
}

// dataFile counts one data file.
func (m *metaReader) dataFile(w wireField) error {
	entry, err := readFile(w)
	if err != nil {
		return err
	}
	if !filepath.IsLocal(entry.Name) {
		return fmt.Errorf("%w: data file %q", ErrDamagedBackup, bounded(entry.Name))
	}
	m.artifact.Ranges++
	m.dataBytes += entry.Size_
	m.files.add(entry.Name)
	return nil
}

func readFile(w wireField) (*backuppb.File, error) {
	b, err := w.message(maxFileMessage)
	if err != nil {
		return nil, err
	}
	f := &backuppb.File{}
	if err := f.Unmarshal(b); err != nil {
		return nil, fmt.Errorf("%w: file entry: %w", errNotProto, err)
	}
	return f, nil
}

// readText reads a text on one line, which br quotes in some releases.
func readText(w wireField, to *string) error {
	b, err := w.message(maxFileMessage)
	*to = bounded(strings.Trim(strings.ToValidUTF8(string(b), "?"), "\"\n "))
	return err
}

// readRelease reads the release of br, which records all that --version prints.
func readRelease(w wireField, to *string) error {
	err := readText(w, to)
	if release := between(*to+"\n", "Release Version: ", "\n"); release != "" {
		*to = release
	}
	return err
}
