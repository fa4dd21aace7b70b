// Package tlsfiles makes a client's TLS configuration from PEM files. There is
// no way to skip verification: a certificate that does not name the address
// dialled is handled by ServerName.
package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Files names what a connection is secured with. TLS is off when all are empty.
type Files struct {
	CA         string // authorities that sign the server's certificate; "" = the system's
	Cert       string // client certificate, with Key
	Key        string
	ServerName string // name in the server's certificate; "" = the host dialled
}

// Enabled reports whether anything is given.
func (f Files) Enabled() bool { return f != Files{} }

// Validate says what is wrong without reading a file.
func (f Files) Validate() error {
	if (f.Cert == "") != (f.Key == "") {
		return errors.New("tls: cert and key belong together (got only one of them)")
	}
	return nil
}

// Load returns the configuration, or nil when TLS is off. The client
// certificate is read again at each handshake, because it may be rotated; the
// authorities are read once.
func (f Files) Load() (*tls.Config, error) {
	if !f.Enabled() {
		return nil, nil
	}
	if err := f.Validate(); err != nil {
		return nil, err
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.ServerName}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("read tls ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read tls ca %s: no PEM certificate in it", f.CA)
		}
	}
	if f.Cert == "" {
		return cfg, nil
	}
	if _, err := f.clientCertificate(nil); err != nil {
		return nil, err
	}
	cfg.GetClientCertificate = f.clientCertificate
	return cfg, nil
}

func (f Files) clientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("read tls client certificate: %w", err)
	}
	return &cert, nil
}
