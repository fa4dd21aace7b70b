package app

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/config"
	"github.com/brctl/brctl/internal/journal"
	"github.com/brctl/brctl/pkg/policy"
)

// A restore has the journal and no configuration: whatever it needs to reach
// the cluster must survive the way there, through the file, and back.
func TestWhatARestoreNeedsSurvivesTheJournal(t *testing.T) {
	full := config.DefaultCluster()
	full.Name = "prod"
	full.PD.Endpoints = []string{"https://10.0.0.2:2379", "https://10.0.0.1:2379"}
	full.PD.TLS = config.TLS{CA: "/pd/ca", Cert: "/pd/cert", Key: "/pd/key", ServerName: "pd.example"}
	full.TiDB.Endpoints = []string{"10.0.0.4:4000", "10.0.0.3:4000"}
	full.TiDB.User = "brctl"
	full.TiDB.TLS = config.TLS{CA: "/db/ca", Cert: "/db/cert", Key: "/db/key", ServerName: "db.example"}
	for name, set := range map[string]func(*config.TiDB){
		"no password":              func(*config.TiDB) {},
		"a password file":          func(c *config.TiDB) { c.PasswordFile = "/secret" },
		"a password variable":      func(c *config.TiDB) { c.PasswordEnv = "BRCTL_PASSWORD" },
		"a password as credential": func(c *config.TiDB) { c.PasswordCredential = "tidb-password" },
	} {
		want := full
		set(&want.TiDB)
		got := clusterOf(throughFile(t, connInfo(clusterID, want)))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-configured +restored):\n%s", name, diff)
		}
	}
}

func throughFile(t *testing.T, conn journal.ConnInfo) journal.ConnInfo {
	t.Helper()
	path := filepath.Join(t.TempDir(), "7.journal")
	j, err := journal.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Connect(conn), j.Close()); err != nil {
		t.Fatal(err)
	}
	c, err := journal.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if c.Conn.ClusterID != clusterID {
		t.Errorf("cluster id %d, want %d", c.Conn.ClusterID, uint64(clusterID))
	}
	return c.Conn
}

func TestTheJournalHoldsWhereAPasswordIsReadAndNeverThePassword(t *testing.T) {
	t.Setenv("BRCTL_PASSWORD", "hunter2")
	c := config.DefaultCluster()
	c.TiDB.PasswordEnv = "BRCTL_PASSWORD"
	text, err := json.Marshal(connInfo(1, c))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "hunter2") || !strings.Contains(string(text), "BRCTL_PASSWORD") {
		t.Errorf("journal would hold %s", text)
	}
}

func TestNothingIsPendingWhereNothingWasEverChanged(t *testing.T) {
	got, err := PendingSettings(SettingsOptions{StateDir: t.TempDir()})
	if err != nil || got == nil || len(got) != 0 {
		t.Errorf("got %#v, %v; want an empty list", got, err)
	}
}

func TestPendingSettingsNameEveryValueOfOurs(t *testing.T) {
	dir := t.TempDir()
	j, err := journal.Open(journal.Path(dir, 7))
	if err != nil {
		t.Fatal(err)
	}
	key := journal.Key{SettingKey: policy.SettingKey{Instance: "h1:20160", Name: "backup.num-threads"}, StoreID: 3}
	err = errors.Join(
		j.Connect(journal.ConnInfo{ClusterID: 7, ClusterName: "prod"}),
		j.Intend("run", []journal.Entry{{Key: key, Old: "8", New: "99"}}),
		j.SawValue(key, "4"), // TiKV put it in place of ours
		j.Close(),
	)
	if err != nil {
		t.Fatal(err)
	}
	got, err := PendingSettings(SettingsOptions{StateDir: dir})
	if err != nil || len(got) != 1 {
		t.Fatalf("got %v, %v", got, err)
	}
	got[0].Since = at(0)
	want := PendingSetting{
		Cluster: "prod", Instance: "h1:20160", Name: "backup.num-threads", StoreID: 3, Old: "8", Ours: "99,4", RunID: "run", Since: at(0),
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Error(diff)
	}
}
