package br

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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

// visibleStores counts the data files that can be seen from here, by store.
// Files that no metadata names (of an attempt that was resumed) count as well.
func visibleStores(dir string) (map[uint64]int, error) {
	visible := map[uint64]int{}
	err := eachName(dir, func(d fs.DirEntry) error {
		store, ok := storeOf(d.Name())
		switch {
		case !ok:
			return nil
		case !d.IsDir():
			if isSST(d.Name()) {
				visible[store]++
			}
			return nil
		}
		return eachName(filepath.Join(dir, d.Name()), func(f fs.DirEntry) error {
			if isSST(f.Name()) {
				visible[store]++
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list data files: %w", err)
	}
	return visible, nil
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
