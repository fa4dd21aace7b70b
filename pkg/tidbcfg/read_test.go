package tidbcfg_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/tidbcfg/tidbcfgtest"
)

func key(instance, item string) policy.SettingKey {
	return policy.SettingKey{Instance: instance, Name: item}
}

func TestReadReturnsEachValueOrWhyItIsUnknown(t *testing.T) {
	server := tidbcfgtest.New(t, tikvs(kv1, kv2, kv3, kv4)...)
	server.SetValue(kv1, policy.ItemNumThreads, "5")
	server.SetFault(kv2, tidbcfgtest.NoStatusAddress)
	server.SetFault(kv3, tidbcfgtest.Unreachable)
	server.SetFault(kv4, tidbcfgtest.Hang)
	client := newClient(t, shortTimeouts, server.Addr())

	got := client.Read(testContext(t), []policy.SettingKey{
		key(kv1, policy.ItemNumThreads),
		key(kv2, policy.ItemNumThreads),
		key(kv3, policy.ItemNumThreads),
		key(kv4, policy.ItemNumThreads),
		key(kv5, policy.ItemNumThreads),
		key(kv1, "backup.no-such-item"),
		key(kv1, policy.ItemRefreshInterval),
		key("192.0.2.1", policy.ItemNumThreads),
		key(kv1, "a`b"),
	})
	want := []struct{ value, err string }{
		{"5", ""},
		{"", "tikv node 192.0.2.22:20160 does not contain status address"},
		{"", "connection refused"},
		{"", "no answer within 700ms"},
		{"", "TiDB listed no such setting"},
		{"", "TiDB listed no such setting"},
		{"1m", ""},
		{"", "port missing"},
		{"", "not the name of a setting"},
	}
	for i, w := range want {
		r := got[i]
		if r.Value != w.value || r.Known != (w.err == "") {
			t.Errorf("reading %d: %v", i, r)
		}
		if w.err != "" && (r.Err == nil || !strings.Contains(r.Err.Error(), w.err)) {
			t.Errorf("reading %d: err %v, want %q", i, r.Err, w.err)
		}
	}
}

func TestReadAsksOneNodeForTheItemsItNeeds(t *testing.T) {
	server := tidbcfgtest.New(t, tikvs(kv1, kv2)...)
	client := newClient(t, nil, server.Addr())
	client.Read(testContext(t), []policy.SettingKey{key(kv2, policy.ItemNumThreads), key(kv2, policy.ItemBatchSize)})
	var sent []string
	for _, s := range server.Statements() {
		sent = append(sent, s.SQL)
	}
	want := []string{"SELECT `KEY`, `VALUE` FROM information_schema.cluster_config WHERE `TYPE` = 'tikv'" +
		" AND `INSTANCE` IN ('192.0.2.22:20160') AND `KEY` IN ('backup.num-threads', 'backup.batch-size')"}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("statements (-want +got):\n%s", diff)
	}
}

func TestReadFindsAnInstanceWithUpperCaseLetters(t *testing.T) {
	for _, listed := range []string{"TiKV-9.example:20160", "tikv-9.example:20160"} {
		server := tidbcfgtest.New(t, tidbcfgtest.TiKV{Address: listed})
		client := newClient(t, nil, server.Addr())
		got := client.Read(testContext(t), []policy.SettingKey{key("TiKV-9.example:20160", policy.ItemNumThreads)})
		if !got[0].Known || got[0].Value != "8" {
			t.Errorf("listed as %s: %v", listed, got[0])
		}
	}
}
