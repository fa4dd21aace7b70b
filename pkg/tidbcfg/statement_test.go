package tidbcfg_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/tidbcfg"
)

func setting(instance, item, want string) policy.Setting {
	return policy.Setting{SettingKey: policy.SettingKey{Instance: instance, Name: item}, Want: want}
}

func TestStatementIsTextFromValidatedParts(t *testing.T) {
	tests := []struct {
		in   policy.Setting
		want string
	}{
		{setting("192.0.2.21:20160", policy.ItemNumThreads, "4"), "SET CONFIG '192.0.2.21:20160' `backup.num-threads` = 4"},
		{setting("TiKV-1.example:20160", policy.ItemBatchSize, "1"), "SET CONFIG 'TiKV-1.example:20160' `backup.batch-size` = 1"},
		{setting("[2001:db8::21]:20160", policy.ItemRefreshInterval, "10s"), "SET CONFIG '[2001:db8::21]:20160' `backup.auto-tune-refresh-interval` = '10s'"},
		{setting("192.0.2.21:20160", "backup.enable-auto-tune", "false"), "SET CONFIG '192.0.2.21:20160' `backup.enable-auto-tune` = false"},
	}
	for _, tt := range tests {
		got, err := tidbcfg.Statement(tt.in)
		if err != nil || got != tt.want {
			t.Errorf("Statement(%v) = %q, %v; want %q", tt.in, got, err, tt.want)
		}
	}
}

func TestStatementRefusesAnythingThatCouldBeSQL(t *testing.T) {
	for _, s := range []policy.Setting{
		setting(`192.0.2.1:20160" ; DROP`, policy.ItemNumThreads, "4"),
		setting(`192.0.2.1' OR '1:20160`, policy.ItemNumThreads, "4"),
		setting(`192.0.2.1\:20160`, policy.ItemNumThreads, "4"),
		setting("192.0.2.1", policy.ItemNumThreads, "4"),
		setting("", policy.ItemNumThreads, "4"),
		setting("[fe80::1%eth0]:20160", policy.ItemNumThreads, "4"),
		setting("192.0.2.1:20160", "backup.num-threads`=1;--", "4"),
		setting("192.0.2.1:20160", "raftstore.sync-log", "4"),
		setting("192.0.2.1:20160", policy.ItemNumThreads, "-1"),
		setting("192.0.2.1:20160", policy.ItemNumThreads, "4; DROP TABLE t"),
		setting("192.0.2.1:20160", policy.ItemNumThreads, "'4'"),
		setting("192.0.2.1:20160", policy.ItemNumThreads, "?"),
		setting("192.0.2.1:20160", policy.ItemNumThreads, ""),
	} {
		if got, err := tidbcfg.Statement(s); err == nil {
			t.Errorf("Statement(%v) = %q, want an error", s, got)
		}
	}
}

func FuzzStatementHasOneShape(f *testing.F) {
	f.Add("192.0.2.1:20160", "backup.num-threads", "4")
	f.Add(`192.0.2.1:20160" ; DROP`, "backup.num-threads", "'")
	f.Add("[::1]:1", "backup.a`b", "10s")
	shape := regexp.MustCompile("^SET CONFIG '[A-Za-z0-9._:\\[\\]-]+' `backup\\.[a-z0-9-]+` = ('[A-Za-z0-9.]+'|[0-9]+|true|false)$")
	f.Fuzz(func(t *testing.T, instance, item, value string) {
		got, err := tidbcfg.Statement(setting(instance, item, value))
		if err == nil && (!shape.MatchString(got) || strings.ContainsAny(got, "\n;\\")) {
			t.Errorf("statement of another shape: %q", got)
		}
	})
}
