package pd_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/brctl/brctl/internal/pd"
	"github.com/brctl/brctl/internal/pd/pdtest"
)

// authority signs certificates and writes them into a directory.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert, a.key = &template, newKey(t)
	a.cert = a.write(t, "ca", template, a.key)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue writes a certificate for a DNS name to name.pem and name.key.
func (a *authority) issue(t *testing.T, name string) {
	t.Helper()
	a.write(t, name, x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, newKey(t))
}

func (a *authority) write(t *testing.T, name string, template x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, &template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]pem.Block{a.file(name): {Type: "CERTIFICATE", Bytes: der}, a.keyFile(name): {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(&block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func (a *authority) file(name string) string    { return filepath.Join(a.dir, name+".pem") }
func (a *authority) keyFile(name string) string { return filepath.Join(a.dir, name+".key") }

// server is a server's configuration for pd.internal, which no address of this
// test resolves from.
func (a *authority) server(t *testing.T, auth tls.ClientAuthType) *tls.Config {
	t.Helper()
	a.issue(t, "pd.internal")
	pair, err := tls.LoadX509KeyPair(a.file("pd.internal"), a.keyFile("pd.internal"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: auth}
}

func TestTLSIsUsedForEveryProtocol(t *testing.T) {
	a := newAuthority(t)
	a.issue(t, "brctl")
	full := pd.TLS{CA: a.file("ca"), Cert: a.file("brctl"), Key: a.keyFile("brctl"), ServerName: "pd.internal"}
	noName, noCert, noCA := full, full, full
	noName.ServerName, noCert.Cert, noCert.Key, noCA.CA = "", "", "", ""
	cases := map[string]struct {
		auth  tls.ClientAuthType
		tls   pd.TLS
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
			fake := pdtest.StartTLS(t, 2, a.server(t, tc.auth))
			timeout := 150 * time.Millisecond // what cannot work is tried to the end
			if tc.works {
				timeout = 10 * time.Second
			}
			c, err := pd.New(pd.Config{Endpoints: fake.URLs(), TLS: tc.tls, Timeout: timeout})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
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
	a := newAuthority(t)
	a.issue(t, "pd.internal")
	a.issue(t, "brctl")
	etcd := startEtcd(t, func(c *embed.Config) {
		c.ListenClientUrls = []url.URL{{Scheme: "https", Host: "127.0.0.1:0"}}
		c.ClientTLSInfo.CertFile, c.ClientTLSInfo.KeyFile = a.file("pd.internal"), a.keyFile("pd.internal")
		c.ClientTLSInfo.TrustedCAFile, c.ClientTLSInfo.ClientCertAuth = a.file("ca"), true
	})
	c, err := pd.New(pd.Config{Endpoints: []string{etcd.url}, Timeout: 5 * time.Second, TLS: pd.TLS{
		CA: a.file("ca"), Cert: a.file("brctl"), Key: a.keyFile("brctl"), ServerName: "pd.internal",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	l := mustAcquire(t, c, "run-1", time.Minute)
	if err := l.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestARenewedCertificateIsUsedWithoutARestart(t *testing.T) {
	a := newAuthority(t)
	a.issue(t, "brctl")
	server := a.server(t, tls.RequireAndVerifyClientCert)
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
	c, err := pd.New(pd.Config{Endpoints: fake.URLs(), Timeout: 5 * time.Second, TLS: pd.TLS{
		CA: a.file("ca"), Cert: a.file("brctl"), Key: a.keyFile("brctl"), ServerName: "pd.internal",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.ClusterVersion(t.Context()); err != nil { // HTTP
		t.Fatal(err)
	}
	a.issue(t, "brctl")
	if _, err := c.ClusterID(t.Context()); err != nil { // gRPC: a new connection
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(serials) < 2 || serials[0] == serials[len(serials)-1] {
		t.Errorf("pd saw certificates %q", serials)
	}
}
