package br_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	backuppb "github.com/pingcap/kvproto/pkg/brpb"

	"github.com/brctl/brctl/internal/engine/br"
	"github.com/brctl/brctl/internal/engine/br/brtest"
	"github.com/brctl/brctl/pkg/policy"
)

func write(t *testing.T, b brtest.Backup) (dir, url string) {
	t.Helper()
	dir = t.TempDir()
	if err := b.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir, "local://" + dir
}

func confirm(t *testing.T, url string) (policy.Artifact, error) {
	t.Helper()
	return br.New(br.Config{Binary: "br"}).Confirm(t.Context(), url)
}

func twoStores(inline bool) brtest.Backup {
	return brtest.Backup{BackupTS: 470829197526302723, ClusterID: 7, Stores: []uint64{1, 4}, Files: 3, Inline: inline}
}

func TestABackupOfEitherFormatIsReadBack(t *testing.T) {
	for _, inline := range []bool{true, false} {
		t.Run(fmt.Sprintf("inline=%v", inline), func(t *testing.T) {
			_, url := write(t, twoStores(inline))
			got, err := confirm(t, url)
			if err != nil {
				t.Fatal(err)
			}
			want := policy.Artifact{StorageURL: url, BackupTS: 470829197526302723, ClusterID: 7, ClusterVersion: "8.5.0",
				EngineVersion: "v8.5.0", SizeBytes: 6100, Ranges: 6, Schemas: 1, Stores: []uint64{1, 4}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Case 23: without a shared mount the metadata names files that are elsewhere.
func TestStoresWhoseFilesAreNotHereAreNamed(t *testing.T) {
	b := twoStores(false)
	b.Stores = []uint64{1, 4, 5, 6}
	dir, url := write(t, b)
	one, err := filepath.Glob(filepath.Join(dir, "6", "*.sst"))
	if err != nil || len(one) != 3 {
		t.Fatal(one, err)
	}
	for _, path := range []string{filepath.Join(dir, "4"), filepath.Join(dir, "5"), one[0]} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	got, err := confirm(t, url)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]uint64{1, 6}, got.Stores); diff != "" {
		t.Errorf("visible (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]uint64{4, 5, 6}, got.MissingStores); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

func TestWhatIsNotABackupIsSaidToBeSo(t *testing.T) {
	edit := func(name string, change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			path := filepath.Join(dir, name)
			b, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, change(b), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	meta := func(change func(*backuppb.BackupMeta)) func(*testing.T, string) {
		return edit("backupmeta", func(b []byte) []byte {
			var m backuppb.BackupMeta
			if err := m.Unmarshal(b); err != nil {
				panic(err)
			}
			change(&m)
			b, err := m.Marshal()
			if err != nil {
				panic(err)
			}
			return b
		})
	}
	const leaf = "backupmeta.datafile.000000001"
	for name, tt := range map[string]struct {
		damage func(*testing.T, string)
		want   error
		text   string
	}{
		"no backupmeta":       {func(t *testing.T, dir string) { t.Helper(); remove(t, dir, "backupmeta") }, br.ErrNoBackup, "no backupmeta"},
		"no directory":        {func(t *testing.T, dir string) { t.Helper(); remove(t, dir, "") }, br.ErrNoBackup, ""},
		"empty file":          {edit("backupmeta", func([]byte) []byte { return nil }), br.ErrDamagedBackup, "empty"},
		"a directory":         {func(t *testing.T, dir string) { t.Helper(); remove(t, dir, "backupmeta"); mkdir(t, dir, "backupmeta") }, br.ErrDamagedBackup, "not a file"},
		"text":                {edit("backupmeta", func([]byte) []byte { return []byte("not found: the object does not exist") }), br.ErrDamagedBackup, "is not br's, or it is encrypted"},
		"noise":               {edit("backupmeta", noise), br.ErrDamagedBackup, "is not br's, or it is encrypted"},
		"cut in a field":      {edit("backupmeta", func(b []byte) []byte { return b[:len(b)-20] }), br.ErrDamagedBackup, "truncated"},
		"cut between fields":  {meta(func(m *backuppb.BackupMeta) { m.SchemaIndex, m.BackupSize = nil, 0 }), br.ErrDamagedBackup, "truncated"},
		"no end version":      {meta(func(m *backuppb.BackupMeta) { m.EndVersion = 0 }), br.ErrDamagedBackup, "no end version"},
		"leaf is gone":        {func(t *testing.T, dir string) { t.Helper(); remove(t, dir, leaf) }, br.ErrDamagedBackup, leaf},
		"leaf is cut":         {edit(leaf, func(b []byte) []byte { return b[:len(b)-1] }), br.ErrDamagedBackup, leaf},
		"leaf is changed":     {edit(leaf, func(b []byte) []byte { b[len(b)-1] ^= 1; return b }), br.ErrDamagedBackup, "SHA-256"},
		"leaf is empty":       {edit(leaf, func([]byte) []byte { return nil }), br.ErrDamagedBackup, "SHA-256"},
		"schemas are changed": {edit("backupmeta.schema.000000002", func(b []byte) []byte { b[len(b)-1] ^= 1; return b }), br.ErrDamagedBackup, "SHA-256"},
		"leaf is encrypted":   {meta(func(m *backuppb.BackupMeta) { m.FileIndex.MetaFiles[0].CipherIv = []byte{1} }), br.ErrEncryptedBackup, leaf},
		"a leaf out of here":  {meta(func(m *backuppb.BackupMeta) { m.FileIndex.MetaFiles[0].Name = "../../etc/passwd" }), br.ErrDamagedBackup, "etc/passwd"},
		"an index of itself":  {selfIndex, br.ErrDamagedBackup, ""},
		"no index of files":   {meta(func(m *backuppb.BackupMeta) { m.FileIndex = nil }), br.ErrEmptyBackup, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir, url := write(t, twoStores(false))
			tt.damage(t, dir)
			_, err := confirm(t, url)
			if !errors.Is(err, tt.want) || !strings.Contains(fmt.Sprint(err), tt.text) {
				t.Errorf("got %v, want %v with %q", err, tt.want, tt.text)
			}
		})
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, name), 0o750); err != nil {
		t.Fatal(err)
	}
}

// noise is what encrypted metadata looks like.
func noise(b []byte) []byte {
	for i := range b {
		b[i] = byte(i*i*31 + i*7 + 165)
	}
	return b
}

// selfIndex makes the index a file that names itself. Its SHA-256 cannot fit,
// but the depth is limited before that is found out.
func selfIndex(t *testing.T, dir string) {
	t.Helper()
	const name = "backupmeta.datafile.000000001"
	loop := &backuppb.MetaFile{MetaFiles: []*backuppb.File{{Name: name, Sha256: make([]byte, 32)}}}
	b, err := loop.Marshal()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnEmptyBackupIsValidAndSaidToBeEmpty(t *testing.T) {
	_, url := write(t, brtest.Backup{BackupTS: 5, Stores: []uint64{1}})
	got, err := confirm(t, url)
	if !errors.Is(err, br.ErrEmptyBackup) || got.BackupTS != 5 || got.StorageURL != url {
		t.Errorf("got %+v, %v", got, err)
	}
}

func FuzzConfirmTakesAnyMetadata(f *testing.F) {
	dir := f.TempDir()
	if err := twoStores(true).Write(dir); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(filepath.Join(dir, "backupmeta"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	e := br.New(br.Config{Binary: "br"})
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := os.WriteFile(filepath.Join(dir, "backupmeta"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := e.Confirm(t.Context(), "local://"+dir)
		if err != nil {
			return
		}
		var m backuppb.BackupMeta // the generated code reads fields that we skip, so it may refuse more
		if err := m.Unmarshal(raw); err != nil {
			return
		}
		if uint64(got.BackupTS) != m.EndVersion || m.FileIndex == nil && got.Ranges != len(m.Files) || got.ClusterID != m.ClusterId {
			t.Errorf("%+v for %v", got, &m)
		}
	})
}

func TestTheCheckpointNamesTheSafepointAndTheTimestamp(t *testing.T) {
	e := br.New(br.Config{Binary: "br"})
	for name, tt := range map[string]struct {
		content string
		want    br.Checkpoint
		bad     bool
	}{
		"br's order": {`{"gc-service-id":"br-1","config-hash":"AA==","backup-ts":470829197526302723,"ranges":[{"StartKey":"eA=="}]}`,
			br.Checkpoint{ServiceID: "br-1", BackupTS: 470829197526302723}, false},
		"another order":    {`{"ranges":[1,{"a":2}],"backup-ts":5,"gc-service-id":"br-1"}`, br.Checkpoint{ServiceID: "br-1", BackupTS: 5}, false},
		"cut in the rest":  {`{"gc-service-id":"br-1","backup-ts":5,"ranges":[{`, br.Checkpoint{ServiceID: "br-1", BackupTS: 5}, false},
		"cut in the facts": {`{"gc-service-id":"br-1","backup-`, br.Checkpoint{}, true},
		"no object":        {`[]`, br.Checkpoint{}, true},
		"no timestamp":     {`{"gc-service-id":"br-1"}`, br.Checkpoint{}, true},
		"empty":            {``, br.Checkpoint{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			mkdir(t, dir, "checkpoints/backup")
			if err := os.WriteFile(filepath.Join(dir, "checkpoints/backup/checkpoint.meta"), []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := e.ReadCheckpoint(t.Context(), "local://"+dir)
			if (err != nil) != tt.bad || got != tt.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	if _, err := e.ReadCheckpoint(t.Context(), "local://"+t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none there: %v", err)
	}
}
