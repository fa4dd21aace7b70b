package tidbcfg_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/pkg/tidbcfg"
	"github.com/brctl/brctl/pkg/tidbcfg/tidbcfgtest"
)

func TestCheckGrantsNamesEachMissingGrantAndItsStatement(t *testing.T) {
	tests := []struct {
		revoked []string
		want    []string
	}{
		{nil, nil},
		{[]string{"CONFIG"}, []string{"GRANT CONFIG ON *.* TO 'brctl'@'%'"}},
		{[]string{"PROCESS"}, []string{"GRANT PROCESS ON *.* TO 'brctl'@'%'"}},
		{[]string{"SELECT"}, []string{"GRANT SELECT ON mysql.tidb TO 'brctl'@'%'"}},
		{[]string{"CONFIG", "PROCESS", "SELECT"}, []string{
			"GRANT CONFIG ON *.* TO 'brctl'@'%'",
			"GRANT PROCESS ON *.* TO 'brctl'@'%'",
			"GRANT SELECT ON mysql.tidb TO 'brctl'@'%'",
		}},
	}
	for _, tt := range tests {
		server := tidbcfgtest.New(t, tikvs(kv1)...)
		server.Revoke(tt.revoked...)
		client := newClient(t, nil, server.Addr())
		err := client.CheckGrants(testContext(t))
		var missing *tidbcfg.MissingGrantError
		if !errors.As(err, &missing) {
			if err != nil || tt.want != nil {
				t.Errorf("without %v: %v", tt.revoked, err)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, missing.Statements()); diff != "" {
			t.Errorf("without %v (-want +got):\n%s", tt.revoked, diff)
		}
		for _, p := range tt.revoked {
			if !strings.Contains(err.Error(), p) {
				t.Errorf("error does not name %s: %v", p, err)
			}
		}
	}
}

func TestCheckGrantsDoesNotTakeAnOutageForAMissingGrant(t *testing.T) {
	server := tidbcfgtest.New(t)
	server.Close()
	client := newClient(t, nil, server.Addr())
	err := client.CheckGrants(testContext(t))
	if err == nil || errors.As(err, new(*tidbcfg.MissingGrantError)) {
		t.Errorf("got %v", err)
	}
}

func TestHardwareHasBothCountsOfEachTiKVThatAnswers(t *testing.T) {
	server := tidbcfgtest.New(t,
		tidbcfgtest.TiKV{Address: kv1, Cores: 7.5, PhysicalCores: 4},
		tidbcfgtest.TiKV{Address: kv2, Cores: 12, PhysicalCores: 24},
		tidbcfgtest.TiKV{Address: kv3, StatusAddress: "192.0.2.23:20180"},
	)
	server.SetFault(kv3, tidbcfgtest.Unreachable)
	got, warnings, err := newClient(t, nil, server.Addr()).Hardware(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]tidbcfg.Hardware{kv1: {Logical: 7.5, Physical: 4}, kv2: {Logical: 12, Physical: 24}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], kv3) {
		t.Errorf("got warnings %q, want one that names %s", warnings, kv3)
	}
}

func TestInstancesListsTheClustersProcesses(t *testing.T) {
	server := tidbcfgtest.New(t, tikvs(kv1)...)
	client := newClient(t, nil, server.Addr())
	got, err := client.Instances(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []tidbcfg.Instance{
		{Type: "tidb", Address: server.Addr(), StatusAddress: "127.0.0.1:10080", Version: "8.5.0", Uptime: time.Hour + 2*time.Minute + 3*time.Second},
		{Type: "tikv", Address: kv1, StatusAddress: "192.0.2.21:20180", Version: "8.5.0", Uptime: time.Hour + 2*time.Minute + 3500*time.Millisecond},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestVersionTableCountAndGCVariablesAreRead(t *testing.T) {
	server := tidbcfgtest.New(t)
	client := newClient(t, nil, server.Addr())
	ctx := testContext(t)
	if got, err := client.Version(ctx); got != "v8.5.0" || err != nil {
		t.Errorf("version %q, %v", got, err)
	}
	if got, err := client.TableCount(ctx); got != 40 || err != nil {
		t.Errorf("tables %d, %v", got, err)
	}
	got, err := client.GC(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := tidbcfg.GCVariables{
		Enabled:     true,
		LifeTime:    10 * time.Minute,
		RunInterval: 10 * time.Minute,
		SafePointAt: time.Date(2019, 1, 1, 3, 2, 3, 0, time.UTC),
		LastRunAt:   time.Date(2026, 11, 30, 21, 40, 5, 123e6, time.UTC),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gc variables (-want +got):\n%s", diff)
	}
}
