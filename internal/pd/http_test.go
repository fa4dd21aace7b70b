package pd_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/brctl/brctl/internal/pd/pdtest"
)

const safePointPath = "/pd/api/v1/gc/safepoint"

func TestAnEndpointThatCannotAnswerIsReplacedByTheNext(t *testing.T) {
	faults := map[string]func(*pdtest.FakePD){
		"no leader known": func(f *pdtest.FakePD) {
			f.Reply(0, safePointPath, http.StatusServiceUnavailable, "[PD:apiutil:ErrRedirectNoLeader]redirect finds no leader\n")
		},
		"redirect fails": func(f *pdtest.FakePD) {
			f.Reply(0, safePointPath, http.StatusInternalServerError, "[PD:apiutil:ErrRedirect]redirect failed\n")
		},
		"not json": func(f *pdtest.FakePD) { f.Reply(0, safePointPath, http.StatusOK, "<html>") },
		"dead":     func(f *pdtest.FakePD) { f.Stop(0) },
		"hangs":    func(f *pdtest.FakePD) { f.Hang(0, true) },
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			fake := pdtest.Start(t, 2)
			fake.SetLeader(1)
			fake.SetGCSafePoint(42)
			c := newClient(t, 2*time.Second, fake.URLs()...)
			fault(fake)
			for range 2 {
				sp, err := c.SafePoints(t.Context())
				if err != nil || sp.GC != 42 {
					t.Fatalf("got %v, %v", sp, err)
				}
			}
			if got := fake.Requests(0, safePointPath); got > 1 {
				t.Errorf("asked the faulty endpoint %d times, want it remembered", got)
			}
		})
	}
}

func TestErrorsQuoteWhatPDSaidAsPlainText(t *testing.T) {
	bodies := map[string]struct {
		status     int
		body, want string
	}{
		"a bare json string": {
			500, `"[PD:cluster:ErrNotBootstrapped]TiKV cluster not bootstrapped, please start TiKV first"` + "\n",
			"500 Internal Server Error: [PD:cluster:ErrNotBootstrapped]TiKV cluster not bootstrapped, please start TiKV first",
		},
		"plain text":      {503, "redirect finds\nno leader\n", "503 Service Unavailable: redirect finds no leader"},
		"nothing":         {502, "", "502 Bad Gateway"},
		"a page":          {500, strings.Repeat("x", 100_000), "500 Internal Server Error: " + strings.Repeat("x", 512) + "…"},
		"a broken answer": {200, `{"gc_safe_point":-1}`, "decode response: json: cannot unmarshal number -1 into Go struct field .gc_safe_point of type policy.TS"},
	}
	for name, b := range bodies {
		t.Run(name, func(t *testing.T) {
			fake := pdtest.Start(t, 1)
			c := newClient(t, 300*time.Millisecond, fake.URLs()...)
			fake.Reply(0, safePointPath, b.status, b.body)
			_, err := c.SafePoints(t.Context())
			want := "read safepoints: " + fake.URLs()[0] + ": " + b.want
			if err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestAnAnswerThatAllMembersWouldGiveIsNotAskedTwice(t *testing.T) {
	fake := pdtest.Start(t, 2)
	fake.Reply(0, safePointPath, http.StatusNotFound, "404 page not found")
	fake.Reply(1, safePointPath, http.StatusNotFound, "404 page not found")
	if _, err := newClient(t, time.Second, fake.URLs()...).SafePoints(t.Context()); err == nil {
		t.Fatal("want an error")
	}
	if got := fake.Requests(1, safePointPath); got != 0 {
		t.Errorf("asked the second member %d times", got)
	}
}

func TestAllEndpointsAreNamedWhenNoneAnswers(t *testing.T) {
	fake := pdtest.Start(t, 3)
	c := newClient(t, 500*time.Millisecond, fake.URLs()...)
	fake.SetLeader(pdtest.NoLeader)
	_, err := c.SafePoints(t.Context())
	for _, url := range fake.URLs() {
		if err == nil || !strings.Contains(err.Error(), url+": 503 Service Unavailable: [PD:apiutil:ErrRedirectNoLeader]redirect finds no leader") {
			t.Errorf("%s is missing in %v", url, err)
		}
	}
}

func TestClusterFacts(t *testing.T) {
	fake := pdtest.Start(t, 3)
	c := newClient(t, 5*time.Second, fake.URLs()...)
	fake.SetReplicas(5)
	if got, err := c.ClusterID(t.Context()); err != nil || got != pdtest.ClusterID {
		t.Errorf("cluster id: got %d, %v", got, err)
	}
	if got, err := c.ClusterVersion(t.Context()); err != nil || got != pdtest.Version {
		t.Errorf("version: got %q, %v", got, err)
	}
	if got, err := c.MaxReplicas(t.Context()); err != nil || got != 5 {
		t.Errorf("replicas: got %d, %v", got, err)
	}
}

func TestMaxReplicasIsNeverZero(t *testing.T) {
	fake, c := startOne(t)
	fake.Reply(0, "/pd/api/v1/config/replicate", 200, `{}`)
	if _, err := c.MaxReplicas(t.Context()); err == nil {
		t.Error("want an error: the model divides by it")
	}
}

func TestTSOIsPDsClock(t *testing.T) {
	fake, c := startOne(t)
	fake.Advance(24 * time.Hour)
	first, err := c.TSO(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.TSO(t.Context())
	if err != nil || second <= first {
		t.Errorf("got %d after %d, %v", second, first, err)
	}
	if d := fake.Now().Sub(first.Time()); d < 0 || d > 10*time.Second {
		t.Errorf("differs by %s from pd's clock", d)
	}
}
