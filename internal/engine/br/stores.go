package br

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// listBatch is how many names of a directory are held at once: a backup may
// have hundreds of thousands of files.
const listBatch = 4096

// storeOf reads the store id from the name of a data file:
// "<store>/<region>_…sst", and in older releases and on other storages
// "<store>_<region>_…sst".
func storeOf(name string) (uint64, bool) {
	id, _, ok := strings.Cut(name, "/")
	if !ok {
		id, _, _ = strings.Cut(name, "_")
	}
	store, err := strconv.ParseUint(id, 10, 64)
	return store, err == nil
}

// dataFiles crosses out the data files that the metadata names against those
// that can be seen from here. A backup may have a million of them, so names are
// held as hashes of 64 bits, some tens of bytes each: that one missing file
// goes unnoticed because it has the hash of a visible one is a matter of 1 in
// 10^13.
type dataFiles struct {
	seed    maphash.Seed
	dirs    map[string]struct{}           // that hold the files, relative to the backup
	unseen  map[place]map[uint64]struct{} // names that were not crossed out yet
	visible map[uint64]struct{}           // stores of which a file was
}

// place is where the files of a store are: a directory of its own, or one that
// all stores share.
type place struct {
	dir   string
	store uint64 // 0: the name does not tell; TiKV's ids begin at 1
}

func newDataFiles() *dataFiles {
	return &dataFiles{
		seed: maphash.MakeSeed(), dirs: map[string]struct{}{},
		unseen: map[place]map[uint64]struct{}{}, visible: map[uint64]struct{}{},
	}
}

func placeOf(name string) place {
	store, _ := storeOf(name)
	return place{dir: path.Dir(name), store: store}
}

// add notes a file that the metadata names.
func (d *dataFiles) add(name string) {
	name = path.Clean(name)
	at := placeOf(name)
	d.dirs[at.dir] = struct{}{}
	if d.unseen[at] == nil {
		d.unseen[at] = map[uint64]struct{}{}
	}
	d.unseen[at][maphash.String(d.seed, name)] = struct{}{}
}

// see crosses out a file that is there. One that no metadata names, as an
// attempt that was resumed may have left, does not count.
func (d *dataFiles) see(name string) {
	at, hash := placeOf(name), maphash.String(d.seed, name)
	if _, ok := d.unseen[at][hash]; !ok {
		return
	}
	delete(d.unseen[at], hash)
	if at.store != 0 {
		d.visible[at.store] = struct{}{}
	}
}

// list looks into every directory that the metadata names and no other. One that
// is not there holds nothing.
func (d *dataFiles) list(ctx context.Context, backup string) error {
	for _, dir := range sortedKeys(d.dirs) {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		full := filepath.Join(backup, dir)
		err := eachName(full, func(e fs.DirEntry) error {
			regular, err := e.Type().IsRegular(), error(nil)
			if e.Type()&fs.ModeSymlink != 0 {
				regular, err = isFile(filepath.Join(full, e.Name()))
			}
			if regular {
				d.see(path.Join(dir, e.Name()))
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			return fmt.Errorf("list data files: %w", err)
		}
	}
	return nil
}

// missing returns the stores of which not every file was seen.
func (d *dataFiles) missing() []uint64 {
	stores := map[uint64]struct{}{}
	for at, names := range d.unseen {
		if len(names) > 0 {
			stores[at.store] = struct{}{}
		}
	}
	return sortedKeys(stores)
}

func isSST(name string) bool { return strings.HasSuffix(name, ".sst") }

// eachName calls visit for every entry of dir, in no order.
func eachName(dir string, visit func(fs.DirEntry) error) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for {
		entries, err := f.ReadDir(listBatch)
		for _, d := range entries {
			if err := visit(d); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
