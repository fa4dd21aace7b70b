package tidbcfg_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/tidbcfg"
)

// The tests of this file run against the real TiDB of a lab:
//
//	BRCTL_LAB_SQL=host:port                     its SQL address
//	BRCTL_LAB_CTL="lab/bin/lab ctl --dir DIR"   for the faults, with absolute paths
//
// They put every setting back.

func labClient(t *testing.T, change func(*tidbcfg.Config)) (*tidbcfg.Client, string) {
	t.Helper()
	address := os.Getenv("BRCTL_LAB_SQL")
	if address == "" {
		t.Skip("skip: no tidb-server (set BRCTL_LAB_SQL=host:port of a lab)")
	}
	return newClient(t, func(c *tidbcfg.Config) {
		c.User = "root"
		if change != nil {
			change(c)
		}
	}, address), address
}

// labCtl runs "lab ctl …".
func labCtl(t *testing.T, args ...string) {
	t.Helper()
	command := strings.Fields(os.Getenv("BRCTL_LAB_CTL"))
	if len(command) == 0 {
		t.Skip("skip: no lab program (set BRCTL_LAB_CTL)")
	}
	// Not the test's context: cleanups put the lab right after it has ended.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if out, err := exec.CommandContext(ctx, command[0], append(command[1:], args...)...).CombinedOutput(); err != nil {
		t.Fatalf("lab ctl %v: %v\n%s", args, err, out)
	}
}

func labTiKVs(t *testing.T, address string) []string {
	t.Helper()
	out := strings.Fields(labQuery(t, address, "SELECT `INSTANCE` FROM information_schema.cluster_info WHERE `TYPE` = 'tikv'"))
	if len(out) < 2 {
		t.Fatalf("%d TiKVs, want at least 2", len(out))
	}
	return out
}

// restoreLater puts the current values back when the test ends.
func restoreLater(t *testing.T, client *tidbcfg.Client, settings []policy.Setting) {
	t.Helper()
	var old []policy.Setting
	for _, s := range settings {
		r := client.Read(testContext(t), []policy.SettingKey{s.SettingKey})[0]
		if !r.Known {
			t.Fatal(r.Err)
		}
		old = append(old, setting(s.Instance, s.Name, r.Value))
	}
	t.Cleanup(func() {
		for _, r := range client.Apply(context.Background(), old) {
			if r.State != policy.SetApplied {
				t.Errorf("put back: %v", r)
			}
		}
	})
}

func TestLabChangesEachTiKVThroughRealTiDB(t *testing.T) {
	client, address := labClient(t, nil)
	ctx := testContext(t)
	if err := client.CheckGrants(ctx); err != nil {
		t.Error(err)
	}
	var want []policy.Setting
	for i, kv := range labTiKVs(t, address) {
		want = append(want,
			setting(kv, policy.ItemRefreshInterval, "90s"),
			setting(kv, policy.ItemBatchSize, "2"),
			setting(kv, policy.ItemNumThreads, string(rune('1'+i))))
	}
	restoreLater(t, client, want)
	began := time.Now()
	for _, r := range client.Apply(ctx, want) {
		if r.State != policy.SetApplied || !tidbcfg.SameValue(r.Got, r.Want) {
			t.Error(r)
		}
	}
	t.Logf("%d settings in %v", len(want), time.Since(began))

	tooMany := client.Apply(ctx, []policy.Setting{setting(want[0].Instance, policy.ItemNumThreads, "999")})
	if r := tooMany[0]; r.State != policy.SetDifferent || r.Got == "999" {
		t.Errorf("out of range: %v", r)
	}
	noItem := client.Apply(ctx, []policy.Setting{setting(want[0].Instance, "backup.no-such-item", "1")})
	if r := noItem[0]; r.State != policy.SetRefused || !strings.Contains(r.Message, "unexpect fields") {
		t.Errorf("no such item: %v", r)
	}
	noInstance := client.Apply(ctx, []policy.Setting{setting("127.0.0.1:1", policy.ItemNumThreads, "1")})
	if r := noInstance[0]; r.State != policy.SetRefused || !strings.Contains(r.Message, "is not found in this cluster") {
		t.Errorf("no such instance: %v", r)
	}
}

func TestLabTopology(t *testing.T) {
	client, address := labClient(t, nil)
	ctx := testContext(t)
	if n, err := client.TableCount(ctx); err != nil || n == 0 {
		t.Errorf("tables %d, %v", n, err)
	}
	hardware, warnings, err := client.Hardware(ctx)
	if err != nil || len(hardware) != len(labTiKVs(t, address)) {
		t.Errorf("hardware %v, warnings %v, %v", hardware, warnings, err)
	}
}

// TiDB shows in EXPLAIN which nodes it is going to ask.
func TestLabAsksOneNodeOnly(t *testing.T) {
	_, address := labClient(t, nil)
	kv := labTiKVs(t, address)[0]
	plan := labQuery(t, address, "EXPLAIN SELECT `KEY`, `VALUE` FROM information_schema.cluster_config WHERE `TYPE` = 'tikv'"+
		" AND `INSTANCE` IN ('"+kv+"') AND `KEY` IN ('backup.num-threads')")
	for _, want := range []string{"node_types:[\"tikv\"]", "instances:[\"" + kv + "\"]"} {
		if !strings.Contains(plan, want) {
			t.Errorf("plan lacks %s:\n%s", want, plan)
		}
	}
}

func TestLabNamesTheMissingGrantsOfANewAccount(t *testing.T) {
	_, address := labClient(t, nil)
	labQuery(t, address, "CREATE USER IF NOT EXISTS 'brctl_probe'@'%' IDENTIFIED BY 'p@ss:/word'")
	t.Cleanup(func() { labQuery(t, address, "DROP USER 'brctl_probe'@'%'") })
	client, _ := labClient(t, func(c *tidbcfg.Config) {
		c.User = "brctl_probe"
		c.Password = func() (string, error) { return "p@ss:/word", nil }
	})
	labQuery(t, address, "GRANT SUPER ON *.* TO 'brctl_probe'@'%'") // includes none of them

	err := client.CheckGrants(testContext(t))
	var missing *tidbcfg.MissingGrantError
	if !errors.As(err, &missing) || len(missing.Missing) != 2 {
		t.Fatalf("got %v", err)
	}
	for _, statement := range missing.Statements() {
		labQuery(t, address, statement)
	}
	if err := client.CheckGrants(testContext(t)); err != nil {
		t.Errorf("after the grants it asked for: %v", err)
	}
	labQuery(t, address, "REVOKE SUPER ON *.* FROM 'brctl_probe'@'%'")
	root, _ := labClient(t, nil)
	want, err := root.TableCount(testContext(t))
	if got, gotErr := client.TableCount(testContext(t)); err != nil || gotErr != nil || got != want {
		t.Errorf("with these grants alone: %d tables, %v; root sees %d, %v", got, gotErr, want, err)
	}
}

func TestLabFaultsOfOneTiKV(t *testing.T) {
	client, address := labClient(t, func(c *tidbcfg.Config) { c.StatementTimeout = 3 * time.Second })
	kvs := labTiKVs(t, address)
	bad, healthy := kvs[len(kvs)-1], kvs[:len(kvs)-1]
	id := strings.TrimSpace(labQuery(t, address, "SELECT STORE_ID FROM information_schema.tikv_store_status WHERE ADDRESS = '"+bad+"'"))
	var want []policy.Setting
	for _, kv := range kvs {
		want = append(want, setting(kv, policy.ItemNumThreads, "3"))
	}
	tests := []struct {
		verb, fault, mend string
		state             policy.SetState
		message           string
		readable          bool
	}{
		{"set-config", "refuse", "ok", policy.SetRefused, "failed to update", true},
		{"set-config", "not-persisted", "ok", policy.SetNotPersisted, "failed to persist", true},
		{"set-config", "hang", "ok", policy.SetUnknown, "no answer within 3s", true},
		{"store", "down", "up", policy.SetUnknown, "connection refused", false},
		{"store", "hung", "up", policy.SetUnknown, "no answer within 3s", false},
		// TiDB replaces the loopback address of a store without a status address by
		// one without a host, so that it no longer knows the instance. On other
		// addresses the warning is "does not contain status address".
		{"store", "no-status", "up", policy.SetRefused, "is not found in this cluster", false},
	}
	for _, tt := range tests {
		t.Run(tt.fault, func(t *testing.T) {
			restoreLater(t, client, want)
			labCtl(t, tt.verb, id, tt.fault)
			t.Cleanup(func() { labCtl(t, tt.verb, id, tt.mend) })
			results := client.Apply(testContext(t), want)
			for i := range healthy {
				if results[i].State != policy.SetApplied {
					t.Errorf("healthy: %v", results[i])
				}
			}
			if r := results[len(kvs)-1]; r.State != tt.state || !strings.Contains(r.Message, tt.message) {
				t.Errorf("faulty: %v", r)
			} else {
				t.Logf("faulty: %s: %s", r.State, r.Message)
			}
			r := client.Read(testContext(t), []policy.SettingKey{key(bad, policy.ItemNumThreads)})[0]
			if r.Known != tt.readable || r.Known == (r.Err != nil) {
				t.Errorf("reading: %v", r)
			}
		})
	}
}

// labQuery runs one statement as root and returns its rows as text.
func labQuery(t *testing.T, address, statement string) string {
	t.Helper()
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.Timeout = "tcp", address, "root", 5*time.Second
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	rows, err := db.QueryContext(ctx, statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for rows.Next() {
		cells := make([]sql.NullString, len(columns))
		targets := make([]any, len(columns))
		for i := range cells {
			targets[i] = &cells[i]
		}
		if err := rows.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		for _, c := range cells {
			out.WriteString(c.String + "\t")
		}
		out.WriteString("\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
