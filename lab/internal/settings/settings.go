// Package settings is the configuration of one TiKV stand-in as its status port shows and changes it: TiKV's names,
// defaults, validation and file rules for the items that matter to a backup, and a few others around them.
//
// The rule worth knowing: the value in force and the value in the file can differ. A number of threads that the
// instance cannot have is answered with success, replaced by the default, and written to the file as it was asked for.
package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Settings is safe for concurrent use.
type Settings struct {
	file  string
	quota float64
	items map[string]item

	mu     sync.Mutex
	raw    map[string]any // as asked; what the file holds
	values map[string]any // in force
}

// Change is one item that a request changed.
type Change struct {
	Item      string
	Asked     any
	Effective any
}

// Open reads the file of an instance and validates it again, as a restart of TiKV does.
func Open(file string, in Instance) (*Settings, error) {
	s := &Settings{file: file, quota: in.Quota, items: items(in)}
	return s, s.Reload()
}

// Reload forgets everything that is not in the file.
func (s *Settings) Reload() error {
	raw := map[string]any{}
	data, err := os.ReadFile(s.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read settings: %w", err)
	}
	if err == nil {
		if err := json.Unmarshal(data, &raw); err != nil {
			return fmt.Errorf("parse settings %s: %w", s.file, err)
		}
	}
	values := map[string]any{}
	for name, it := range s.items {
		values[name] = it.value
		asked, inFile := raw[name]
		if !inFile {
			continue
		}
		if v, err := it.parse(asked); err == nil {
			values[name] = normalize(name, v, it.value, s.quota)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw, s.values = raw, values
	return nil
}

// Set changes items, all of them or none. With persist it also writes what was asked to the file; an error of that write
// is ErrNotPersisted, and the values are in force all the same.
func (s *Settings) Set(request map[string]any, persist bool) ([]Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := make([]Change, 0, len(request))
	for _, asked := range slices.Sorted(maps.Keys(request)) {
		change, err := s.check(asked, request[asked])
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	for _, c := range changes {
		s.values[c.Item] = c.Effective
	}
	if !persist {
		return changes, nil
	}
	for _, c := range changes {
		s.raw[c.Item] = c.Asked
	}
	return changes, s.save()
}

func (s *Settings) check(asked string, v any) (Change, error) {
	name := strings.ReplaceAll(asked, "_", "-")
	field := asked[strings.LastIndex(asked, ".")+1:]
	it, known := s.items[name]
	if !known {
		// The spelling is TiKV's, and products match on it.
		return Change{}, fmt.Errorf("unexpect fields: %s", field)
	}
	if !it.online {
		return Change{}, fmt.Errorf("config %s can not be changed", field)
	}
	parsed, err := it.parse(v)
	if err != nil {
		return Change{}, err
	}
	return Change{Item: name, Asked: v, Effective: normalize(name, parsed, it.value, s.quota)}, nil
}

// ErrNotPersisted marks a change that is in force but not in the file.
var ErrNotPersisted = errors.New("not persisted")

func (s *Settings) save() error {
	data, err := json.MarshalIndent(s.raw, "", "  ")
	if err != nil {
		return fmt.Errorf("encode settings: %w: %w", ErrNotPersisted, err)
	}
	tmp := s.file + ".tmp"
	if err := os.WriteFile(tmp, data, 0o644); err != nil {
		return fmt.Errorf("write settings: %w: %w", ErrNotPersisted, err)
	}
	if err := os.Rename(tmp, s.file); err != nil {
		return fmt.Errorf("write settings: %w: %w", ErrNotPersisted, err)
	}
	return nil
}

// Values is a copy of everything in force, by full item name.
func (s *Settings) Values() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.values)
}

// Tree is Values with a level for each part of a name, the shape of TiKV's GET /config.
func (s *Settings) Tree() map[string]any {
	tree := map[string]any{}
	for name, v := range s.Values() {
		level := tree
		parts := strings.Split(name, ".")
		for _, p := range parts[:len(parts)-1] {
			next, ok := level[p].(map[string]any)
			if !ok {
				next = map[string]any{}
				level[p] = next
			}
			level = next
		}
		level[parts[len(parts)-1]] = v
	}
	return tree
}

// Backup is the part that the backup pool follows.
type Backup struct {
	NumThreads      int
	BatchSize       int
	AutoTune        bool
	RemainThreads   int
	RefreshInterval time.Duration
	IOThreads       int
}

// Backup returns the backup items in force.
func (s *Settings) Backup() Backup {
	v := s.Values()
	count := func(name string) int { return int(v["backup."+name].(float64)) }
	refresh, err := time.ParseDuration(v["backup.auto-tune-refresh-interval"].(string))
	if err != nil {
		panic(fmt.Sprintf("settings: stored interval: %v", err)) // parse let nothing else in
	}
	return Backup{
		NumThreads:      count("num-threads"),
		BatchSize:       count("batch-size"),
		AutoTune:        v["backup.enable-auto-tune"].(bool),
		RemainThreads:   count("auto-tune-remain-threads"),
		RefreshInterval: refresh,
		IOThreads:       count("io-thread-size"),
	}
}
