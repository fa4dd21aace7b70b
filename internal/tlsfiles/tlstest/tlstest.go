// Package tlstest makes certificates for tests: an authority, and what it signs
// for servers and clients, as files.
package tlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/brctl/brctl/internal/tlsfiles"
)

// Authority signs certificates and writes them into a directory that ends with
// the test.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New returns a new authority.
func New(tb testing.TB) *Authority {
	tb.Helper()
	a := &Authority{dir: tb.TempDir(), key: newKey(tb)}
	template := &x509.Certificate{
		SerialNumber: serial(tb), Subject: pkix.Name{CommonName: "authority"},
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		tb.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		tb.Fatal(err)
	}
	writePEM(tb, a.CAFile(), "CERTIFICATE", der)
	return a
}

// Issue writes a certificate for the DNS name, good for servers and clients,
// and its key. The next call for the same name replaces both.
func (a *Authority) Issue(tb testing.TB, name string) {
	tb.Helper()
	key := newKey(tb)
	template := &x509.Certificate{
		SerialNumber: serial(tb), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		tb.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	writePEM(tb, a.CertFile(name), "CERTIFICATE", der)
	writePEM(tb, a.KeyFile(name), "EC PRIVATE KEY", keyDER)
}

// CAFile holds the authority's own certificate.
func (a *Authority) CAFile() string { return filepath.Join(a.dir, "ca.pem") }

// CertFile is where Issue writes the certificate for name.
func (a *Authority) CertFile(name string) string { return filepath.Join(a.dir, name+".pem") }

// KeyFile is where Issue writes the key for name.
func (a *Authority) KeyFile(name string) string { return filepath.Join(a.dir, name+".key") }

// Server issues a certificate for name and returns the configuration of a
// server that shows it and asks its clients for one as auth says.
func (a *Authority) Server(tb testing.TB, name string, auth tls.ClientAuthType) *tls.Config {
	tb.Helper()
	a.Issue(tb, name)
	pair, err := tls.LoadX509KeyPair(a.CertFile(name), a.KeyFile(name))
	if err != nil {
		tb.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: auth}
}

// Load is files.Load for files that are good.
func Load(tb testing.TB, files tlsfiles.Files) *tls.Config {
	tb.Helper()
	cfg, err := files.Load()
	if err != nil {
		tb.Fatal(err)
	}
	return cfg
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func serial(tb testing.TB) *big.Int {
	tb.Helper()
	n, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func writePEM(tb testing.TB, path, kind string, der []byte) {
	tb.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		tb.Fatal(err)
	}
}
