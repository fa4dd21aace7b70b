package tidbcfg_test

import (
	"errors"
	"strings"
	"testing"

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
		{[]string{"CONFIG", "PROCESS"}, []string{
			"GRANT CONFIG ON *.* TO 'brctl'@'%'",
			"GRANT PROCESS ON *.* TO 'brctl'@'%'",
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

func TestTablesAreCounted(t *testing.T) {
	client := newClient(t, nil, tidbcfgtest.New(t).Addr())
	if got, err := client.TableCount(testContext(t)); got != 40 || err != nil {
		t.Errorf("tables %d, %v", got, err)
	}
}

func TestNoTableInSightIsAnUnknownNumber(t *testing.T) {
	server := tidbcfgtest.New(t)
	server.SetTables(0)
	_, err := newClient(t, nil, server.Addr()).TableCount(testContext(t))
	if err == nil || err.Error() != "count tables: the account sees none" {
		t.Errorf("got %v", err)
	}
}
