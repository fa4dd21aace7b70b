package brtest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	backuppb "github.com/pingcap/kvproto/pkg/brpb"

	"github.com/brctl/brctl/pkg/policy"
)

// Backup describes a finished backup to be written.
type Backup struct {
	BackupTS  policy.TS
	ClusterID uint64
	Stores    []uint64
	Files     int  // data files of each store
	Inline    bool // format version 1: everything in backupmeta itself
}

const fileSize = 1000 // bytes that each data file has

// Write writes the backup below dir, as br does: data files, the leaves of the
// indexes, and backupmeta last.
func (b Backup) Write(dir string) error {
	files, err := b.writeData(dir)
	if err != nil {
		return err
	}
	schemas := []*backuppb.Schema{{Db: []byte(`{"id":1}`), Table: []byte(`{"id":2}`)}}
	meta := &backuppb.BackupMeta{
		ClusterId: b.ClusterID, ClusterVersion: `"8.5.0"` + "\n", BrVersion: "BR\nRelease Version: v8.5.0\n",
		EndVersion: uint64(b.BackupTS), BackupSize: uint64(len(files)*fileSize + 100),
	}
	if b.Inline {
		meta.Files, meta.Schemas = files, schemas
		return b.writeMeta(dir, meta)
	}
	meta.Version = 1
	if meta.FileIndex, err = writeLeaf(dir, "backupmeta.datafile.000000001", &backuppb.MetaFile{DataFiles: files}); err != nil {
		return err
	}
	if meta.SchemaIndex, err = writeLeaf(dir, "backupmeta.schema.000000002", &backuppb.MetaFile{Schemas: schemas}); err != nil {
		return err
	}
	return b.writeMeta(dir, meta)
}

func (b Backup) writeData(dir string) ([]*backuppb.File, error) {
	content := make([]byte, fileSize)
	sum := sha256.Sum256(content)
	var files []*backuppb.File
	for _, store := range b.Stores {
		if err := os.MkdirAll(filepath.Join(dir, fmt.Sprint(store)), 0o750); err != nil {
			return nil, err
		}
		for i := range b.Files {
			name := fmt.Sprintf("%d/%d_6_%x_1693913536827_write.sst", store, 100+i, sum[:4])
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				return nil, err
			}
			files = append(files, &backuppb.File{Name: name, Sha256: sum[:], Cf: "write", TotalKvs: 10, TotalBytes: 2 * fileSize, Size_: fileSize})
		}
	}
	return files, nil
}

func writeLeaf(dir, name string, leaf *backuppb.MetaFile) (*backuppb.MetaFile, error) {
	b, err := leaf.Marshal()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	entry := &backuppb.File{Name: name, Sha256: sum[:], Size_: uint64(len(b))}
	return &backuppb.MetaFile{MetaFiles: []*backuppb.File{entry}}, os.WriteFile(filepath.Join(dir, name), b, 0o600)
}

func (b Backup) writeMeta(dir string, meta *backuppb.BackupMeta) error {
	raw, err := meta.Marshal()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "backupmeta"), raw, 0o600)
}
