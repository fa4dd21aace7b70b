package br_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/engine/br"
	"github.com/brctl/brctl/pkg/policy"
)

func spec() br.Spec {
	level := 3
	return br.Spec{
		Plan:        policy.Plan{Concurrency: 8, Compression: "zstd", CompressionLevel: &level},
		PDEndpoints: []string{"http://pd-b.example:2379", "pd-a.example:2379/"},
		StorageURL:  "local:///mnt/nas/full-20261130T203415Z-01ABC",
		Filters:     []string{"shop.*", "!shop.tmp_*"},
		RunID:       "01ABC", LogDir: "/var/log/brctl",
		CredentialEnv: map[string]string{"AWS_SECRET_ACCESS_KEY": "file:/etc/brctl/sk"},
	}
}

func TestAnInvocationSaysWhatThePlanSays(t *testing.T) {
	inv, err := br.New(br.Config{Binary: "/opt/br"}).Prepare(spec())
	if err != nil {
		t.Fatal(err)
	}
	want := policy.Invocation{
		Engine: "br", Binary: "/opt/br",
		Args: strings.Fields("backup full --pd pd-b.example:2379,pd-a.example:2379 --storage local:///mnt/nas/full-20261130T203415Z-01ABC " +
			"--concurrency 8 --compression zstd --compression-level 3 --checksum=false --filter shop.* --filter !shop.tmp_* " +
			"--log-file /var/log/brctl/01ABC.br.log --log-level info"),
		StorageURL: "local:///mnt/nas/full-20261130T203415Z-01ABC",
		LogFile:    "/var/log/brctl/01ABC.br.log", OutputFile: "/var/log/brctl/01ABC.br.out",
		CredentialEnv: map[string]string{"AWS_SECRET_ACCESS_KEY": "file:/etc/brctl/sk"},
	}
	if diff := cmp.Diff(want, inv); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	raw, err := json.Marshal(inv)
	if err != nil {
		t.Fatal(err)
	}
	var back policy.Invocation
	if err := json.Unmarshal(raw, &back); err != nil || !cmp.Equal(inv, back) {
		t.Errorf("an invocation does not survive its record: %v", err)
	}
}

func TestOptionalFlagsAreSentOnlyWhenThePlanHasThem(t *testing.T) {
	yes := true
	s := spec()
	s.Plan = policy.Plan{Concurrency: 4, Compression: "lz4", Checksum: true, RateLimitMBPerS: 100, ReplicaReadLabel: "zone:a"}
	s.PDEndpoints, s.PDTLS = []string{"https://pd.example:2379"}, br.TLS{CA: "/ca", Cert: "/cert", Key: "/key"}
	s.Filters, s.SendCredentialsToTiKV = nil, &yes
	inv, err := br.New(br.Config{Binary: "br"}).Prepare(s)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(inv.Args, " ")
	for _, want := range []string{"--pd pd.example:2379 ", "--checksum=true", "--ratelimit 100", "--replica-read-label zone:a",
		"--ca /ca --cert /cert --key /key", "--send-credentials-to-tikv=true"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	for _, not := range []string{"--compression-level", "--filter", "--check-requirements"} {
		if strings.Contains(got, not) {
			t.Errorf("%q has %q", got, not)
		}
	}
}

// Case 19: br resumes only with the very arguments of the first attempt.
func TestOnlyWhatBrDoesNotHashDiffersBetweenTwoPlans(t *testing.T) {
	e := br.New(br.Config{Binary: "br"})
	first, err := e.Prepare(spec())
	if err != nil {
		t.Fatal(err)
	}
	s := spec()
	s.Plan.Concurrency, s.Plan.Compression, s.Plan.CompressionLevel = 2, "lz4", nil
	second, err := e.Prepare(s)
	if err != nil {
		t.Fatal(err)
	}
	hashed := func(args []string) (kept []string) {
		for i, a := range args {
			if a == "--pd" || a == "--storage" || a == "--filter" {
				kept = append(kept, a, args[i+1])
			}
		}
		return kept
	}
	if diff := cmp.Diff(hashed(first.Args), hashed(second.Args)); diff != "" || len(hashed(first.Args)) != 8 {
		t.Errorf("%v (-first +second):\n%s", hashed(first.Args), diff)
	}
}

// Case 16: what is refused is refused without repeating the secret.
func TestBadSpecsAreRefusedInClearWordsAndWithoutSecrets(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*br.Spec)
		want   string
	}{
		"keys in the URL":       {func(s *br.Spec) { s.StorageURL = "s3://b/full?access-key=AK&secret-access-key=SK%2F1" }, "carries credentials"},
		"keys, underscores":     {func(s *br.Spec) { s.StorageURL = "s3://b/full?secret_access_key=SK" }, "carries credentials"},
		"token":                 {func(s *br.Spec) { s.StorageURL = "s3://b/full?session-token=SK" }, "carries credentials"},
		"sas token":             {func(s *br.Spec) { s.StorageURL = "azure://c/x?sas-token=SK" }, "carries credentials"},
		"user and password":     {func(s *br.Spec) { s.StorageURL = "s3://AK:SK@b/full" }, "carries credentials"},
		"invalid URL with keys": {func(s *br.Spec) { s.StorageURL = "s3://bucket-a/%zz?secret-access-key=SK" }, "carries credentials"},
		"invalid URL":           {func(s *br.Spec) { s.StorageURL = "local:///%SK" }, "not a valid URL"},
		"invalid path":          {func(s *br.Spec) { s.StorageURL = "/mnt/50%SK" }, "not a valid URL"},
		"s3":                    {func(s *br.Spec) { s.StorageURL = "s3://b/full" }, `storage scheme "s3" is not supported yet`},
		"no storage":            {func(s *br.Spec) { s.StorageURL = "" }, "empty"},
		"relative path":         {func(s *br.Spec) { s.StorageURL = "backups/x" }, "local:///absolute/path"},
		"host in local":         {func(s *br.Spec) { s.StorageURL = "local://mnt/nas" }, "local:///absolute/path"},
		"no PD":                 {func(s *br.Spec) { s.PDEndpoints = nil }, "no PD endpoint"},
		"http with a CA":        {func(s *br.Spec) { s.PDTLS.CA = "/ca" }, "is http, but a CA"},
		"https without a CA":    {func(s *br.Spec) { s.PDEndpoints = []string{"https://pd:1"} }, "is https, but no CA"},
		"two in one":            {func(s *br.Spec) { s.PDEndpoints = []string{"a:1,b:1"} }, "endpoint 1 is not host:port"},
		"half a pair":           {func(s *br.Spec) { s.PDTLS = br.TLS{CA: "/ca", Cert: "/c"} }, "together with its key"},
		"run id with a path":    {func(s *br.Spec) { s.RunID = "../x" }, "must be a file name"},
		"no run id":             {func(s *br.Spec) { s.RunID = "" }, "must be a file name"},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec()
			tt.change(&s)
			_, err := br.New(br.Config{Binary: "br"}).Prepare(s)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "SK") {
				t.Errorf("the error gives the secret away: %v", err)
			}
		})
	}
}

func TestPathsThatBrTakesAreTaken(t *testing.T) {
	e := br.New(br.Config{Binary: "br"})
	for _, url := range []string{"local:///mnt/a", "file:///mnt/a", "/mnt/a", "local:///mnt/a+b c"} {
		s := spec()
		s.StorageURL = url
		if _, err := e.Prepare(s); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestSecretsAreHiddenWhereverTheyStand(t *testing.T) {
	e := br.New(br.Config{Binary: "br"})
	for in, want := range map[string]string{
		"--storage=s3://b/f?access-key=SK1&secret-access-key=SK%2F1&endpoint=http://192.0.2.9:9000": "--storage=s3://b/f?access-key=<secret>&secret-access-key=<secret>&endpoint=http://192.0.2.9:9000",
		"Starting component br: --azblob.account-key SK --concurrency 4":                            "Starting component br: --azblob.account-key <secret> --concurrency 4",
		`{"secret_access_key":"SK","region":"x"}`:                                                   `{"secret_access_key":<secret>,"region":"x"}`,
		`session-token=\"SK\" rest`:                                                                 `session-token=<secret> rest`,
		"AWS_SECRET_ACCESS_KEY=SK PATH=/bin":                                                        "AWS_SECRET_ACCESS_KEY=<secret> PATH=/bin",
		"dial s3://AK:SK@bucket/x":                                                                  "dial s3://AK:<secret>@bucket/x",
		"password: SK":                                                                              "password: <secret>",
		"--crypter.key=SK --key /etc/key.pem":                                                       "--crypter.key=<secret> --key /etc/key.pem",
		"--send-credentials-to-tikv=false --pd a:1,b:2 start_key=7480":                              "--send-credentials-to-tikv=false --pd a:1,b:2 start_key=7480",
		"get credentials: NoCredentialProviders: no valid providers in chain":                       "get credentials: NoCredentialProviders: no valid providers in chain",
	} {
		if got := e.Redact(in); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
}

func FuzzASecretInAURLNeverSurvives(f *testing.F) {
	f.Add("s3://bucket-a/full", "SKSKSK")
	f.Add("s3://bucket-a/%zz", "a/b+c==")
	e := br.New(br.Config{Binary: "br"})
	f.Fuzz(func(t *testing.T, base, secret string) {
		if len(secret) < 6 || strings.ContainsAny(secret, "&\"'\\,;}]) \t\r\n\v\f\u0085\u00a0") || strings.Contains(base, secret) || strings.Contains("<secret>", secret) {
			t.Skip()
		}
		if got := e.Redact(base + "?secret-access-key=" + secret + "&region=x"); strings.Contains(got, secret) {
			t.Errorf("%q is in %q", secret, got)
		}
	})
}

// Case 17: no two runs share a path, whatever the clock or the zone says.
func TestNoTwoRunsShareAPath(t *testing.T) {
	at := time.Date(2026, 11, 1, 5, 30, 0, 0, time.UTC) // 01:30 in New York, the first time
	new1, new2 := br.RunURL("local:///mnt/nas/", at, "01A"), br.RunURL("local:///mnt/nas", at, "01B")
	if new1 == new2 {
		t.Errorf("two runs of one second share %s", new1)
	}
	if new1 != "local:///mnt/nas/full-20261101T053000Z-01A" {
		t.Errorf("got %s", new1)
	}
	zone := time.FixedZone("EDT", -4*3600)
	if again := br.RunURL("local:///mnt/nas", at.In(zone), "01A"); again != new1 {
		t.Errorf("the zone changes the path: %s", again)
	}
	if br.RunURL("x", at.Add(time.Hour), "r") == br.RunURL("x", at, "r") {
		t.Error("the repeated hour repeats a path")
	}
}
