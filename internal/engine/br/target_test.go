package br_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/brctl/brctl/internal/engine/br"
)

// Case 18: what lies at a path decides what may be done with it.
func TestTargetsAreClassifiedByBrsOwnRules(t *testing.T) {
	const checkpoint = "checkpoints/backup/checkpoint.meta"
	for name, tt := range map[string]struct {
		files []string
		want  br.TargetState
	}{
		"nothing":                       {nil, br.TargetEmpty},
		"foreign file":                  {[]string{"README"}, br.TargetEmpty},
		"lock":                          {[]string{"backup.lock"}, br.TargetOnlyLock},
		"lock and data":                 {[]string{"backup.lock", "1/2_3_write.sst"}, br.TargetLeftover},
		"data in the old layout":        {[]string{"4_2189_157_default.sst"}, br.TargetLeftover},
		"lock, data, checkpoint":        {[]string{"backup.lock", "1/2_3_write.sst", checkpoint}, br.TargetResumable},
		"lock, data, metadata":          {[]string{"backup.lock", "1/2_3_write.sst", "backupmeta"}, br.TargetComplete},
		"metadata and stale checkpoint": {[]string{"backup.lock", "backupmeta", checkpoint}, br.TargetComplete},
		"log backup":                    {[]string{"backupmeta/x.meta"}, br.TargetEmpty},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			dir := filepath.Join(base, "cluster", "full")
			for _, file := range tt.files {
				mkdir(t, dir, filepath.Dir(file))
				if err := os.WriteFile(filepath.Join(dir, file), []byte("x"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := br.New(br.Config{Binary: "br"}).Target(t.Context(), "local://"+base+"/", "local://"+dir)
			if err != nil || got.State != tt.want || got.Exists != (tt.files != nil) || got.FreeBytes == 0 || got.Path != dir {
				t.Errorf("got %+v, %v; want %s", got, err, tt.want)
			}
			left, err := filepath.Glob(filepath.Join(base, "*", "*", ".brctl*"))
			if err != nil || left != nil {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func TestATargetThatCannotBeUsedIsAnError(t *testing.T) {
	e := br.New(br.Config{Binary: "br"})
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	base := filepath.Dir(file)
	for _, tt := range []struct{ base, path, want string }{
		{base, file, "is not a directory"},
		{base, file + "/below", "not a directory"},
		{"/proc", "/proc/nothing-can-be-made-here", "write to target"},
		{base + "/mnt", base + "/mnt/full", "backup directory " + base + "/mnt does not exist here: is it mounted?"},
		{file, file + "/full", "backup directory " + file + " is not a directory"},
		{file + "/below", file + "/below/full", "not a directory"},
		{base, base + "-other/full", "is not below the backup directory"},
		{base, base + "/../full", "is not below the backup directory"},
		{"", base, "storage URL is empty"},
	} {
		baseURL := tt.base
		if baseURL != "" {
			baseURL = "local://" + baseURL
		}
		got, err := e.Target(t.Context(), baseURL, "local://"+tt.path)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s below %s: got %+v, %v; want %q", tt.path, tt.base, got, err, tt.want)
		}
	}
	if left, err := os.ReadDir(base); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Confirm(ctx, "local://"+t.TempDir()); err == nil {
		t.Error("a canceled look succeeded")
	}
}

// An unmounted directory lies on the file system of "/".
func TestATargetOnTheRootFileSystemIsSaidToBeThere(t *testing.T) {
	e := br.New(br.Config{Binary: "br"})
	for _, parent := range []string{t.TempDir(), "/var/tmp", "/dev/shm", "."} {
		base, err := os.MkdirTemp(parent, ".brctl-test-*") //nolint:usetesting // on several file systems
		if err != nil {
			continue // not for us, or not here; the temporary directory always is
		}
		t.Cleanup(func() { _ = os.RemoveAll(base) })
		if base, err = filepath.Abs(base); err != nil {
			t.Fatal(err)
		}
		got, err := e.Target(t.Context(), "local://"+base, "local://"+base+"/cluster/full")
		if want := device(t, base) == device(t, "/"); err != nil || got.OnRootFS != want {
			t.Errorf("%s: on the root file system %v, %v; want %v", base, got.OnRootFS, err, want)
		}
	}
}

func device(t *testing.T, path string) uint64 {
	t.Helper()
	var s syscall.Stat_t
	if err := syscall.Stat(path, &s); err != nil {
		t.Fatal(err)
	}
	return s.Dev
}
