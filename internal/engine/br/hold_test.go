package br_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/brctl/brctl/internal/engine/br"
	"github.com/brctl/brctl/pkg/policy"
)

func TestTheHoldOfADeadBRIsFoundInItsLogOrItsCheckpoint(t *testing.T) {
	const logged = `[2026/11/30 20:34:12.000 +00:00] [INFO] [backup.go:494] ["current backup safePoint job"] [safePoint="{ID=br-11111111-0000-4000-8000-000000000001,TTL=1h12m0s,BackupTime=\"2026-11-30 20:34:12\",BackupTS=470829197526302723}"]` + "\n"
	const checkpoint = `{"gc-service-id":"br-22222222-0000-4000-8000-000000000002","config-hash":"aGFzaA==","backup-ts":470829197526302723,"ranges":null}`
	for name, tc := range map[string]struct{ log, checkpoint, want string }{
		"the log":                          {logged, "", "br-11111111-0000-4000-8000-000000000001"},
		"the log before the checkpoint":    {logged, checkpoint, "br-11111111-0000-4000-8000-000000000001"},
		"the checkpoint, the log is lost":  {"", checkpoint, "br-22222222-0000-4000-8000-000000000002"},
		"neither, br did not get that far": {"[2026/11/30 20:34:12.000 +00:00] [INFO] [x.go:1] [hello]\n", "", ""},
		"nothing at all":                   {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			inv := policy.Invocation{StorageURL: "local://" + dir, LogFile: filepath.Join(dir, "run.br.log")}
			write := func(path, text string) {
				if text == "" {
					return
				}
				if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(inv.LogFile, tc.log)
			write(filepath.Join(dir, "checkpoints/backup/checkpoint.meta"), tc.checkpoint)
			got, err := br.New(br.Config{}).Hold(t.Context(), inv)
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}
