package pd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"
)

// DefaultTimeout bounds one call when Config.Timeout is zero. It outlasts the
// replacement of a leader that died: up to 11 s were seen with three members of
// PD 8.5 on a busy machine.
const DefaultTimeout = 15 * time.Second

// Config says how to reach PD.
type Config struct {
	// Endpoints are client URLs of PD members ("http://host:2379") or plain
	// "host:port". One that answers is enough, several survive its death.
	Endpoints []string
	TLS       TLS
	// Timeout bounds every call as a whole, all endpoints and retries
	// included; zero means DefaultTimeout.
	Timeout time.Duration
}

// TLS names the files of a TLS connection; its zero value means plain text. Our
// own certificate is read for every connection, so a renewed one needs no
// restart; the authorities are read once, by New.
type TLS struct {
	CA   string // file of the authorities that sign PD's certificates; "": the system's
	Cert string // file of our certificate, with Key; "" for none
	Key  string
	// ServerName is the name that PD's certificates are checked against, for
	// endpoints written as addresses that the certificates do not name.
	ServerName string
}

func (t TLS) enabled() bool { return t != TLS{} }

// config returns nil when TLS is off.
func (t TLS) config() (*tls.Config, error) {
	if !t.enabled() {
		return nil, nil
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("tls: cert and key belong together")
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("read tls ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls ca %s holds no certificate", t.CA)
		}
	}
	if t.Cert != "" {
		if _, err := t.certificate(nil); err != nil {
			return nil, err
		}
		c.GetClientCertificate = t.certificate
	}
	return c, nil
}

func (t TLS) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("read tls certificate: %w", err)
	}
	return &pair, nil
}

// normalizeEndpoints returns the endpoints as URLs of one scheme, in the order
// given.
func normalizeEndpoints(endpoints []string, scheme string) ([]string, error) {
	if len(endpoints) == 0 {
		return nil, errors.New("no pd endpoint given")
	}
	out := make([]string, len(endpoints))
	for i, e := range endpoints {
		if !strings.Contains(e, "://") {
			e = scheme + "://" + e
		}
		u, err := url.Parse(e)
		if err != nil {
			return nil, fmt.Errorf("parse pd endpoint: %w", err)
		}
		if u.Host == "" || u.Path != "" && u.Path != "/" {
			return nil, fmt.Errorf("pd endpoint %q is not of the form %s://host:port", endpoints[i], scheme)
		}
		if u.Scheme != scheme {
			return nil, fmt.Errorf("pd endpoint %q does not use %s (tls settings given: %t)", endpoints[i], scheme, scheme == "https")
		}
		out[i] = u.Scheme + "://" + u.Host
	}
	return out, nil
}
