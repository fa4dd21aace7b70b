package tidbcfg

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"
)

// Default timeouts. The driver's own defaults are 0, which means "wait for
// ever".
const (
	DefaultConnectTimeout   = 5 * time.Second
	DefaultStatementTimeout = 15 * time.Second
	DefaultWriteTimeout     = 10 * time.Second
	DefaultParallel         = 16

	// readGrace is how much longer than a statement a single network read may
	// last, so that the statement's own deadline is the one that is reported.
	readGrace = 5 * time.Second
)

// Config says how to reach TiDB. Zero timeouts mean the defaults above; a
// negative value is refused.
type Config struct {
	// Endpoints are TiDB servers as host:port. They are tried in order,
	// beginning with the one that answered last.
	Endpoints []string
	User      string
	// Password is asked for each new connection, so that a rotated password
	// works without a restart. It may be nil for an account without one. A func
	// cannot be printed by accident.
	Password func() (string, error)
	TLS      TLS

	ConnectTimeout   time.Duration // per endpoint: dial, TLS handshake and login
	StatementTimeout time.Duration // per statement, as seen by the caller; see Hardware before going below 10 s
	ReadTimeout      time.Duration // per network read; default: StatementTimeout + 5 s
	WriteTimeout     time.Duration // per network write

	// Parallel is how many instances are read or changed at once.
	Parallel int
}

// TLS says how to secure the connection. There is no way to skip verification:
// a certificate without the server's address is handled by ServerName.
type TLS struct {
	Enabled    bool
	CA         string // PEM file; "" means the system's roots
	Cert       string // PEM file of the client certificate, with Key
	Key        string
	ServerName string // name in the server's certificate; "" means the endpoint's host
}

func (c Config) withDefaults() Config {
	setDefault(&c.ConnectTimeout, DefaultConnectTimeout)
	setDefault(&c.StatementTimeout, DefaultStatementTimeout)
	setDefault(&c.WriteTimeout, DefaultWriteTimeout)
	setDefault(&c.ReadTimeout, c.StatementTimeout+readGrace)
	setDefault(&c.Parallel, DefaultParallel)
	return c
}

func setDefault[T ~int | ~int64](v *T, def T) {
	if *v == 0 {
		*v = def
	}
}

// validate returns every problem at once.
func (c Config) validate() error {
	var problems []error
	if len(c.Endpoints) == 0 {
		problems = append(problems, errors.New("endpoints: none given (want at least one host:port)"))
	}
	for i, e := range c.Endpoints {
		if err := ValidateEndpoint(e); err != nil {
			problems = append(problems, fmt.Errorf("endpoints[%d]: %w", i, err))
		}
	}
	if c.User == "" {
		problems = append(problems, errors.New("user: empty"))
	}
	for _, t := range []struct {
		name  string
		value int64
	}{
		{"connect_timeout", int64(c.ConnectTimeout)},
		{"statement_timeout", int64(c.StatementTimeout)},
		{"read_timeout", int64(c.ReadTimeout)},
		{"write_timeout", int64(c.WriteTimeout)},
		{"parallel", int64(c.Parallel)},
	} {
		if t.value < 0 {
			problems = append(problems, fmt.Errorf("%s: negative", t.name))
		}
	}
	return errors.Join(append(problems, c.TLS.validate())...)
}

func (t TLS) validate() error {
	switch {
	case !t.Enabled && t != (TLS{}):
		return errors.New("tls: ca, cert, key or server_name given, but tls is not enabled")
	case (t.Cert == "") != (t.Key == ""):
		return errors.New("tls: cert and key belong together (got only one of them)")
	}
	return nil
}

// load builds the TLS configuration, nil when TLS is off. The client
// certificate is read again at each handshake, because it may be rotated.
func (t TLS) load() (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("read tls ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read tls ca %s: no PEM certificate in it", t.CA)
		}
	}
	if t.Cert == "" {
		return cfg, nil
	}
	if _, err := t.clientCertificate(nil); err != nil {
		return nil, err
	}
	cfg.GetClientCertificate = t.clientCertificate
	return cfg, nil
}

func (t TLS) clientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	cert, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("read tls client certificate: %w", err)
	}
	return &cert, nil
}
