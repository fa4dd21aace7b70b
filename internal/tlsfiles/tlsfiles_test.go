package tlsfiles_test

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/brctl/brctl/internal/tlsfiles"
	"github.com/brctl/brctl/internal/tlsfiles/tlstest"
)

func TestNoFilesMeanNoTLS(t *testing.T) {
	cfg, err := tlsfiles.Files{}.Load()
	if cfg != nil || err != nil {
		t.Errorf("got %v, %v, want nil, nil", cfg, err)
	}
}

func TestAnyFieldTurnsTLSOn(t *testing.T) {
	a := tlstest.New(t)
	a.Issue(t, "brctl")
	for name, files := range map[string]tlsfiles.Files{
		"an authority":         {CA: a.CAFile()},
		"a client certificate": {Cert: a.CertFile("brctl"), Key: a.KeyFile("brctl")},
		"a name":               {ServerName: "pd.internal"},
	} {
		cfg, err := files.Load()
		if err != nil || cfg == nil {
			t.Errorf("%s: got %v, %v", name, cfg, err)
			continue
		}
		if cfg.InsecureSkipVerify || cfg.MinVersion < tls.VersionTLS12 {
			t.Errorf("%s: skips verification: %t, lowest version %x", name, cfg.InsecureSkipVerify, cfg.MinVersion)
		}
	}
}

func TestFilesThatCannotWorkAreRefused(t *testing.T) {
	a := tlstest.New(t)
	a.Issue(t, "brctl")
	a.Issue(t, "other")
	text := filepath.Join(t.TempDir(), "text.pem")
	if err := os.WriteFile(text, []byte("no certificate\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		files tlsfiles.Files
		want  string
	}{
		"a missing ca":             {tlsfiles.Files{CA: "/nonexistent"}, "read tls ca: open /nonexistent: no such file or directory"},
		"a ca without certificate": {tlsfiles.Files{CA: text}, "read tls ca " + text + ": no PEM certificate in it"},
		"a cert without a key":     {tlsfiles.Files{CA: a.CAFile(), Cert: a.CertFile("brctl")}, "tls: cert and key belong together (got only one of them)"},
		"a key without a cert":     {tlsfiles.Files{CA: a.CAFile(), Key: a.KeyFile("brctl")}, "tls: cert and key belong together (got only one of them)"},
		"a missing cert":           {tlsfiles.Files{Cert: "/nonexistent", Key: a.KeyFile("brctl")}, "read tls client certificate: open /nonexistent: no such file or directory"},
		"another's key":            {tlsfiles.Files{Cert: a.CertFile("brctl"), Key: a.KeyFile("other")}, "read tls client certificate: tls: private key does not match public key"},
	} {
		if _, err := tc.files.Load(); err == nil || err.Error() != tc.want {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
}

// handshake returns the serial numbers of the certificates that a server of one
// connection sees, and the client's error.
func handshake(t *testing.T, server, client *tls.Config) (seen []string, err error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		plain, err := listener.Accept()
		if err != nil {
			return
		}
		conn := tls.Server(plain, server)
		_ = conn.Handshake() // the client reports what went wrong
		for _, cert := range conn.ConnectionState().PeerCertificates {
			seen = append(seen, cert.SerialNumber.String())
		}
		_ = conn.Close()
	}()
	dialer := &tls.Dialer{Config: client}
	conn, err := dialer.DialContext(t.Context(), "tcp", listener.Addr().String())
	if err == nil {
		_, err = io.Copy(io.Discard, conn) // TLS 1.3 refuses a client after its handshake
		_ = conn.Close()
	}
	_ = listener.Close()
	<-served
	return seen, err
}

func TestTheServersNameIsVerified(t *testing.T) {
	a := tlstest.New(t)
	server := a.Server(t, "pd.internal", tls.NoClientCert)
	for name, tc := range map[string]struct {
		files tlsfiles.Files
		want  string // in the error; "" for success
	}{
		"the name in the certificate": {tlsfiles.Files{CA: a.CAFile(), ServerName: "pd.internal"}, ""},
		"another name":                {tlsfiles.Files{CA: a.CAFile(), ServerName: "tidb.internal"}, "not tidb.internal"},
		"the address dialled":         {tlsfiles.Files{CA: a.CAFile()}, "127.0.0.1"},
		"the system's authorities":    {tlsfiles.Files{ServerName: "pd.internal"}, "unknown authority"},
	} {
		_, err := handshake(t, server, tlstest.Load(t, tc.files))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

func TestARotatedClientCertificateIsShownAtTheNextHandshake(t *testing.T) {
	a := tlstest.New(t)
	server := a.Server(t, "pd.internal", tls.RequireAndVerifyClientCert)
	a.Issue(t, "brctl")
	client := tlstest.Load(t, tlsfiles.Files{
		CA: a.CAFile(), Cert: a.CertFile("brctl"), Key: a.KeyFile("brctl"), ServerName: "pd.internal",
	})
	first, err := handshake(t, server, client)
	if err != nil {
		t.Fatal(err)
	}
	a.Issue(t, "brctl")
	second, err := handshake(t, server, client)
	if err != nil {
		t.Fatal(err)
	}
	if len(first) != 1 || len(second) != 1 || first[0] == second[0] {
		t.Errorf("the server saw %q, then %q", first, second)
	}
	if err := os.Remove(a.KeyFile("brctl")); err != nil {
		t.Fatal(err)
	}
	if _, err := handshake(t, server, client); err == nil || !strings.Contains(err.Error(), "read tls client certificate") {
		t.Errorf("without a key: got %v", err)
	}
}
