package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/pkg/policy"
)

func TestCapabilitiesChangeAtTheirReleases(t *testing.T) {
	type row struct {
		Checksum     bool
		Concurrency  policy.ConcurrencyMeaning
		ResumeSpeed  bool
		ReplicaRead  bool
		Checkpoint   bool
		Pool         policy.PoolRule
		Threads      string
		RegionMiB    uint64
		WarningPart  string
		CheckpointFl bool
	}
	old := row{Checksum: true, Concurrency: policy.TablesInFlight, Checkpoint: true, Pool: policy.PoolKeepsSize, Threads: "bkwkr", RegionMiB: 96, CheckpointFl: true}
	with := func(r row, change func(*row)) row { change(&r); return r }
	v66 := with(old, func(r *row) { r.ReplicaRead = true })
	v75 := with(v66, func(r *row) { r.ResumeSpeed = true })
	v82 := with(v75, func(r *row) { r.Concurrency = policy.StreamsPerStore })
	v84 := with(v82, func(r *row) { r.RegionMiB = 256 })
	v85 := with(v84, func(r *row) { r.Checksum = false })
	v852 := with(v85, func(r *row) { r.Pool, r.Threads = policy.PoolRebuilds, "bkwkr_vN,backup_worker_vN" })
	tests := map[string]row{
		"v6.5.0": old, "6.5.12": old, "v6.6.0": v66, "v7.1.0": v66, "v7.1.1": v75, "v7.5.1": v75, "v8.1.2": v75,
		"v8.2.0": v82, "v8.4.0": v84, "v8.5.0": v85, "v8.5.1-20250101-abc": v85, "v8.5.2": v852, "8.5.7": v852,
		"v6.1.7":         with(old, func(r *row) { r.Checkpoint, r.CheckpointFl, r.WarningPart = false, false, "older than v6.5.0" }),
		"v9.0.0-beta.2":  with(v852, func(r *row) { r.WarningPart = "newer than v8.5" }),
		"nightly-dirty":  with(v852, func(r *row) { r.WarningPart = "is not a release" }),
		"":               with(v852, func(r *row) { r.WarningPart = "version unknown" }),
		"v8.5":           with(v852, func(r *row) { r.WarningPart = "is not a release" }),
		"v8.5.70000.1":   with(v852, func(r *row) { r.WarningPart = "is not a release" }),
		"v8.5.-1":        with(v852, func(r *row) { r.WarningPart = "is not a release" }),
		"v8.70000.0":     with(v852, func(r *row) { r.WarningPart = "is not a release" }),
		"v8.6.0+nextgen": with(v852, func(r *row) { r.WarningPart = "newer than v8.5" }),
	}
	for version, want := range tests {
		c, warning := policy.CapabilityFor(version)
		got := row{
			c.ChecksumDefault, c.Concurrency, c.ResumeMayChangeSpeed, c.SupportsReplicaReadFlag, c.Checkpoint, c.Pool,
			strings.Join(c.WorkerThreads, ","), c.DefaultRegionBytes / policy.MiB, want.WarningPart, strings.Contains(strings.Join(c.Flags(), " "), "use-checkpoint"),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", version, diff)
		}
		if (warning == "") != (want.WarningPart == "") || !strings.Contains(warning, want.WarningPart) {
			t.Errorf("%q: got warning %q, want %q in it", version, warning, want.WarningPart)
		}
	}
}

func TestFlagsGrowWithTheVersion(t *testing.T) {
	old, _ := policy.CapabilityFor("v6.1.0")
	now, _ := policy.CapabilityFor("v6.6.0")
	added := strings.Join(now.Flags(), " ")
	for _, f := range old.Flags() {
		added = strings.Replace(added, f, "", 1)
	}
	if got, want := strings.Join(strings.Fields(added), " "), "replica-read-label use-checkpoint"; got != want {
		t.Errorf("added since v6.1: got %q, want %q", got, want)
	}
}

func TestBRRefusesWhatItsOwnCheckRefuses(t *testing.T) {
	tests := []struct {
		name, br string
		stores   []string
		want     string // "" = accepted
	}{
		{"the same version", "v8.5.0", []string{"8.5.0", "v8.5.0"}, ""},
		{"an older minor", "v7.5.1", []string{"v7.1.0"}, ""},
		{"one major older", "v7.5.1", []string{"v6.5.3"}, ""},
		{"a newer patch", "v6.5.3", []string{"v6.5.12"}, ""},
		{"two majors older", "v7.5.1", []string{"v5.4.0"}, "br v7.5.1 refuses TiKV v5.4.0"},
		{"a newer major", "v7.5.1", []string{"v8.0.0"}, "br v7.5.1 refuses TiKV v8.0.0"},
		{"br 8.2 wants TiKV 8.2", "v8.5.0", []string{"v8.1.1"}, "br v8.5.0 refuses TiKV v8.1.1"},
		{"one of two", "v8.5.0", []string{"v8.5.0", "v7.5.0", "v7.5.0"}, "br v8.5.0 refuses TiKV v7.5.0"},
		{"a development br compares nothing", "nightly-dirty", []string{"v4.0.0"}, ""},
		{"br unknown", "", []string{"v4.0.0"}, ""},
		{"but wants readable stores", "nightly-dirty", []string{"unknown"}, `version "unknown" is not three numbers (want 8.5.0)`},
	}
	for _, tt := range tests {
		err := policy.CheckCompatible(tt.br, tt.stores)
		if (err == nil) != (tt.want == "") || err != nil && (!errors.Is(err, policy.ErrIncompatible) || strings.Count(err.Error(), tt.want) != 1) {
			t.Errorf("%s: got %v, want %q once", tt.name, err, tt.want)
		}
	}
}

func TestBackupWorkersAreToldFromOtherThreads(t *testing.T) {
	for name, want := range map[string]bool{
		"bkwkr": true, "bkwkr_v12": true, "backup_worker_v0": true,
		"backup_io": false, "backup_stream_1": false, "log_backup_scan": false, "grpc_server_0": false, "": false,
	} {
		if got := policy.IsBackupWorker(name); got != want {
			t.Errorf("%q: got %t, want %t", name, got, want)
		}
	}
}

func TestVersionsKeepTheirSuffix(t *testing.T) {
	v, err := policy.ParseVersion(" v5.1.0-6-g04e5e8cc8-dirty ")
	want := policy.Version{Major: 5, Minor: 1, Suffix: "6-g04e5e8cc8-dirty"}
	if err != nil || v != want || v.String() != "v5.1.0-6-g04e5e8cc8-dirty" {
		t.Errorf("got %+v, %v; want %+v", v, err, want)
	}
}

func FuzzParseVersion(f *testing.F) {
	for _, s := range []string{"v6.5.3", "8.5.0", "v5.1.0-6-g04e5e8cc8-dirty", "nightly-dirty", "", "v9.0.0-beta.2.pre", "1.2.3+x", "v1.2", "00.1.2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := policy.ParseVersion(s)
		if err != nil {
			return
		}
		again, err := policy.ParseVersion(v.String())
		if err != nil || again.Compare(v) != 0 {
			t.Errorf("%q: %s does not parse back: %v, %v", s, v, again, err)
		}
	})
}
