package br_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	backuppb "github.com/pingcap/kvproto/pkg/brpb"

	"github.com/brctl/brctl/internal/engine/br"
)

// touch makes files below dir, and their directories.
func touch(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		mkdir(t, dir, filepath.Dir(name))
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// writeNaming writes the metadata of a backup that consists of these files.
func writeNaming(t *testing.T, names []string) string {
	t.Helper()
	meta := &backuppb.BackupMeta{EndVersion: 5, ClusterVersion: "8.5.0"}
	for _, name := range names {
		meta.Files = append(meta.Files, &backuppb.File{Name: name, Size_: 1})
	}
	raw, err := meta.Marshal()
	dir := t.TempDir()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "backupmeta"), raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// With local:// a host without the mount writes to its own disk: the metadata
// names files that are nowhere to be seen.
func TestAStoreIsMissingWhenAnyOfItsFilesIs(t *testing.T) {
	own := []string{"1/10_2_a_default.sst", "1/10_2_a_write.sst", "4/11_2_b_write.sst", "5/12_2_c_write.sst"}
	flat := []string{"1_10_2_a_default.sst", "1_10_2_a_write.sst", "4_11_2_b_write.sst", "5_12_2_c_write.sst"}
	type ids = []uint64
	for name, tt := range map[string]struct {
		named, here      []string
		visible, missing ids
	}{
		"all there":                         {own, own, ids{1, 4, 5}, nil},
		"all there, in one directory":       {flat, flat, ids{1, 4, 5}, nil},
		"nothing there":                     {own, nil, nil, ids{1, 4, 5}},
		"nothing there, in one directory":   {flat, nil, nil, ids{1, 4, 5}},
		"a directory is missing":            {own, own[:3], ids{1, 4}, ids{5}},
		"a store of one directory":          {flat, flat[:3], ids{1, 4}, ids{5}},
		"one file of a store":               {own, own[1:], ids{1, 4, 5}, ids{1}},
		"one file, in one directory":        {flat, flat[1:], ids{1, 4, 5}, ids{1}},
		"an older attempt's file instead":   {own, append([]string{"1/9_1_z_default.sst", "4/9_1_z_write.sst"}, own[1:]...), ids{1, 4, 5}, ids{1}},
		"only older attempts' files":        {own[2:3], []string{"4/9_1_z_write.sst"}, nil, ids{4}},
		"a file that is being written":      {own[2:3], []string{own[2] + ".tmp"}, nil, ids{4}},
		"a directory of that name":          {own[2:3], []string{own[2] + "/x"}, nil, ids{4}},
		"the other layout":                  {own, flat, nil, ids{1, 4, 5}},
		"both layouts":                      {append(own[:2:2], flat[2:]...), append(own[:2:2], flat[3]), ids{1, 5}, ids{4}},
		"a file where a directory is to be": {own[2:3], []string{"4"}, nil, ids{4}},
		"no store in the name":              {[]string{"x/1.sst", "2_1.sst"}, []string{"x/1.sst", "2_1.sst"}, ids{2}, nil},
		"no store in a missing name":        {[]string{"x/1.sst", "2_1.sst"}, []string{"2_1.sst"}, ids{2}, ids{0}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeNaming(t, tt.named)
			touch(t, dir, tt.here...)
			got, err := confirm(t, "local://"+dir)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.visible, got.Stores); diff != "" {
				t.Errorf("visible (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.missing, got.MissingStores); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAStoresDirectoryMayBeALink(t *testing.T) {
	dir, elsewhere := writeNaming(t, []string{"1/10_2_a_write.sst", "4/11_2_b_write.sst", "5/12_2_c_write.sst"}), t.TempDir()
	touch(t, elsewhere, "10_2_a_write.sst", "file")
	touch(t, dir, "4/other", "5/other")
	for link, to := range map[string]string{
		"1": elsewhere, "4/11_2_b_write.sst": filepath.Join(elsewhere, "file"), "5/12_2_c_write.sst": filepath.Join(elsewhere, "nothing"),
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := confirm(t, "local://"+dir)
	if err != nil || !cmp.Equal(got.Stores, []uint64{1, 4}) || !cmp.Equal(got.MissingStores, []uint64{5}) {
		t.Errorf("visible %v, missing %v, %v", got.Stores, got.MissingStores, err)
	}
}

func TestADataFileOutOfTheBackupIsDamage(t *testing.T) {
	for _, name := range []string{"../1/10_2_a_write.sst", "/1/10_2_a_write.sst", ""} {
		_, err := confirm(t, "local://"+writeNaming(t, []string{name}))
		if !errors.Is(err, br.ErrDamagedBackup) || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("%q", name)) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
