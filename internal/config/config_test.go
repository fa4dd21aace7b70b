package config_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/config"
	"github.com/brctl/brctl/pkg/policy"
)

var update = flag.Bool("update", false, "rewrite the expected problems in testdata")

func TestTheDocumentedExampleLoads(t *testing.T) {
	cfg, err := config.Load("../../configs/brctl.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, ok := cfg.FindSchedule("nightly")
	if !ok {
		t.Fatal("no schedule nightly")
	}
	o := cfg.Options(s)
	want := policy.Limits{MaxHostCPU: 0.8, MaxDuration: 6 * time.Hour, MaxGCHold: 8 * time.Hour, MaxQPSDrop: 0.2, MaxP95Rise: 0.3}
	if diff := cmp.Diff(want, o.Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if o.BaseLoad != nil {
		t.Errorf("base load = %v, want none: an example must not override what is measured", *o.BaseLoad)
	}
}

// Each testdata/invalid-*.yaml holds one kind of mistake; the .txt beside it
// the exact problems.
func TestEveryProblemIsReportedWithItsPlace(t *testing.T) {
	files, err := filepath.Glob("testdata/invalid-*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			_, err := config.Load(file)
			if err == nil {
				t.Fatal("loaded, want problems")
			}
			got := err.Error() + "\n"
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

const valid = `
state: {dir: /tmp/x}
clusters:
  - name: c
    pd: {endpoints: ["http://127.0.0.1:2379"]}
    tidb: {endpoints: ["127.0.0.1:4000"]}
storage:
  - {name: s, url: "local:///b"}
schedules:
  - {name: n, cluster: c, storage: s, cron: %q}
`

func TestCronSpecificationsAreCheckedStrictly(t *testing.T) {
	for spec, wantErr := range map[string]string{
		"0 1 * * *":                "",
		"@daily":                   "",
		"@every 6h":                "",
		"@every 1m":                "",
		"*/90 * * * *":             "",
		"TZ=":                      "put the zone into timezone",
		"TZ=0":                     "put the zone into timezone",
		"TZ=UTC":                   "put the zone into timezone",
		"CRON_TZ=America/New_York": "put the zone into timezone",
		"0 0 2 * * *":              "expected exactly 5 fields",
		"0 2 * * 7":                "above maximum",
		"0 22-2 * * *":             "beyond end of range",
		"@reboot":                  "unrecognized descriptor",
		"@Daily":                   "unrecognized descriptor",
		"@every 1d":                "unknown unit",
		"@every 0s":                "want at least @every 1m0s",
		"@every -1h":               "want at least @every 1m0s",
		"@every 500ms":             "want at least @every 1m0s",
		"":                         "is missing",
	} {
		t.Run(spec, func(t *testing.T) {
			_, err := config.Parse("f.yaml", fmt.Appendf(nil, valid, spec))
			switch {
			case wantErr == "" && err != nil:
				t.Errorf("got %v, want no problem", err)
			case wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr) || !strings.Contains(err.Error(), "schedules[0].cron")):
				t.Errorf("got %v, want a problem of schedules[0].cron with %q", err, wantErr)
			}
		})
	}
}

func TestDurationsAndShares(t *testing.T) {
	for text, want := range map[string]time.Duration{"90m": 90 * time.Minute, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "0s": 0} {
		var d config.Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || time.Duration(d) != want {
			t.Errorf("%q = %v, %v, want %v", text, time.Duration(d), err, want)
		}
	}
	for _, text := range []string{"", "5", "-1h", "1x", "d", "7dd"} {
		var d config.Duration
		if err := d.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("duration %q = %v, want an error", text, time.Duration(d))
		}
	}
	for text, want := range map[string]float64{"80%": 0.8, "0.8": 0.8, "1": 1, "12.5 %": 0.125} {
		var r config.Ratio
		if err := r.UnmarshalText([]byte(text)); err != nil || float64(r) != want {
			t.Errorf("%q = %v, %v, want %v", text, r, err, want)
		}
	}
	for _, text := range []string{"80", "-1%", "", "%", "NaN"} {
		var r config.Ratio
		if err := r.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("share %q = %v, want an error", text, float64(r))
		}
	}
}

func TestPathsBecomeAbsoluteSoThatTheyAreFoundFromAnywhere(t *testing.T) {
	t.Chdir(t.TempDir())
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var c config.Config
	c.State.Dir = "state"
	cl := config.DefaultCluster()
	cl.TiDB.PasswordFile, cl.PD.TLS.CA, cl.TiKV.TLS.Key = "pw", "tls/ca.pem", "/abs/key.pem"
	c.Clusters = []config.Cluster{cl}
	if err := c.Absolute(); err != nil {
		t.Fatal(err)
	}
	got := []string{c.State.Dir, c.Clusters[0].TiDB.PasswordFile, c.Clusters[0].PD.TLS.CA, c.Clusters[0].TiKV.TLS.Key, c.Clusters[0].TiDB.TLS.CA, c.Clusters[0].BR.Path}
	want := []string{cwd + "/state", cwd + "/pw", cwd + "/tls/ca.pem", "/abs/key.pem", "", "br"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

func TestPasswordsAreReadFromTheirSourceAndNeverPrint(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "pw")
	if err := os.WriteFile(file, []byte("p%40ss\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BRCTL_TEST_PW", "from-env")
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	for source, want := range map[config.PasswordSource]string{
		{File: file}:           "p%40ss",
		{Env: "BRCTL_TEST_PW"}: "from-env",
		{Credential: "pw"}:     "p%40ss",
		{}:                     "",
	} {
		got, err := source.Read()
		if err != nil || got.Reveal() != want {
			t.Errorf("%+v = %q, %v, want %q", source, got.Reveal(), err, want)
		}
		if printed := fmt.Sprintf("%v %+v %#v %s", got, got, got, got); want != "" && strings.Contains(printed, want) {
			t.Errorf("the secret prints: %s", printed)
		}
	}
	for _, source := range []config.PasswordSource{{File: filepath.Join(dir, "none")}, {Env: "BRCTL_TEST_NONE"}, {Credential: "none"}} {
		if got, err := source.Read(); err == nil {
			t.Errorf("%+v = %q, want an error: an empty password would be tried instead", source, got.Reveal())
		}
	}
}

func FuzzParseNeverPanics(f *testing.F) {
	f.Add(fmt.Appendf(nil, valid, "TZ="))
	f.Add([]byte("clusters: [{name: [}"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = config.Parse("f.yaml", data) })
}
