package pd_test

import (
	"crypto/tls"
	"net/url"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/brctl/brctl/internal/pd"
	"github.com/brctl/brctl/internal/pd/pdtest"
	"github.com/brctl/brctl/internal/tlsfiles"
	"github.com/brctl/brctl/internal/tlsfiles/tlstest"
)

// serverName is what no address of these tests resolves from.
const serverName = "pd.internal"

// clientFiles are those of a client that shows a certificate.
func clientFiles(a *tlstest.Authority) tlsfiles.Files {
	return tlsfiles.Files{CA: a.CAFile(), Cert: a.CertFile("brctl"), Key: a.KeyFile("brctl"), ServerName: serverName}
}

// newTLSClient returns a client that ends with the test.
func newTLSClient(t *testing.T, timeout time.Duration, files tlsfiles.Files, endpoints ...string) *pd.Client {
	t.Helper()
	c, err := pd.New(pd.Config{Endpoints: endpoints, TLS: tlstest.Load(t, files), Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestTLSIsUsedForEveryProtocol(t *testing.T) {
	a := tlstest.New(t)
	a.Issue(t, "brctl")
	full := clientFiles(a)
	noName, noCert, noCA := full, full, full
	noName.ServerName, noCert.Cert, noCert.Key, noCA.CA = "", "", "", ""
	cases := map[string]struct {
		auth  tls.ClientAuthType
		files tlsfiles.Files
		works bool
	}{
		"both sides show certificates":      {tls.RequireAndVerifyClientCert, full, true},
		"the server's certificate only":     {tls.NoClientCert, noCert, true},
		"no certificate where pd wants one": {tls.RequireAndVerifyClientCert, noCert, false},
		"a name that does not fit":          {tls.NoClientCert, noName, false},
		"an authority we do not trust":      {tls.NoClientCert, noCA, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fake := pdtest.StartTLS(t, 2, a.Server(t, serverName, tc.auth))
			timeout := 150 * time.Millisecond // what cannot work is tried to the end
			if tc.works {
				timeout = 10 * time.Second
			}
			c := newTLSClient(t, timeout, tc.files, fake.URLs()...)
			for name, call := range calls(c) {
				if name == "Acquire" {
					continue // see the test of the lease
				}
				if err := call(t.Context()); (err == nil) != tc.works {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

func TestTheLeaseUsesTLS(t *testing.T) {
	t.Parallel()
	a := tlstest.New(t)
	a.Issue(t, serverName)
	a.Issue(t, "brctl")
	etcd := startEtcd(t, func(c *embed.Config) {
		c.ListenClientUrls = []url.URL{{Scheme: "https", Host: "127.0.0.1:0"}}
		c.ClientTLSInfo.CertFile, c.ClientTLSInfo.KeyFile = a.CertFile(serverName), a.KeyFile(serverName)
		c.ClientTLSInfo.TrustedCAFile, c.ClientTLSInfo.ClientCertAuth = a.CAFile(), true
	})
	c := newTLSClient(t, 5*time.Second, clientFiles(a), etcd.url)
	l := mustAcquire(t, c, "run-1", time.Minute)
	if err := l.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestARenewedCertificateIsUsedWithoutARestart(t *testing.T) {
	a := tlstest.New(t)
	a.Issue(t, "brctl")
	server := a.Server(t, serverName, tls.RequireAndVerifyClientCert)
	var (
		mu      sync.Mutex
		serials []string
	)
	server.VerifyConnection = func(s tls.ConnectionState) error {
		mu.Lock()
		defer mu.Unlock()
		serials = append(serials, s.PeerCertificates[0].SerialNumber.String())
		return nil
	}
	fake := pdtest.StartTLS(t, 1, server)
	c := newTLSClient(t, 5*time.Second, clientFiles(a), fake.URLs()...)
	if _, err := c.ClusterVersion(t.Context()); err != nil { // HTTP
		t.Fatal(err)
	}
	a.Issue(t, "brctl")
	if _, err := c.ClusterID(t.Context()); err != nil { // gRPC: a new connection
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(serials) < 2 || serials[0] == serials[len(serials)-1] {
		t.Errorf("pd saw certificates %q", serials)
	}
}
