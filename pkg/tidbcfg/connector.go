package tidbcfg

import (
	"context"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
)

// connector opens a connection to the first endpoint that answers, beginning
// with the one that answered last. It is the pool's only source of connections.
type connector struct {
	endpoints []endpoint
	timeout   time.Duration // per endpoint: dial, TLS handshake and login
	good      atomic.Int64  // index of the endpoint that answered last
}

type endpoint struct {
	address string
	driver.Connector
}

func newConnector(cfg Config) (*connector, error) {
	c := &connector{timeout: cfg.ConnectTimeout}
	for _, address := range cfg.Endpoints {
		mc := driverConfig(cfg, address)
		mc.TLS = cfg.TLS // the driver clones it and fills in ServerName per endpoint
		if err := mc.Apply(mysql.BeforeConnect(passwordFrom(cfg.Password))); err != nil {
			return nil, err
		}
		inner, err := mysql.NewConnector(mc)
		if err != nil {
			return nil, fmt.Errorf("configure driver for %s: %w", address, err)
		}
		c.endpoints = append(c.endpoints, endpoint{address, inner})
	}
	return c, nil
}

// driverConfig is built from fields, because a DSN has several ways to mean
// something else than it says. ConnectionAttributes shows brctl to a DBA who
// looks at performance_schema.session_connect_attrs.
func driverConfig(cfg Config, address string) *mysql.Config {
	mc := mysql.NewConfig()
	mc.Net = "tcp"
	mc.Addr = address
	mc.User = cfg.User
	mc.Timeout = cfg.ConnectTimeout
	mc.ReadTimeout = cfg.ReadTimeout
	mc.WriteTimeout = cfg.WriteTimeout
	mc.ConnectionAttributes = "program_name:brctl"
	mc.Logger = &mysql.NopLogger{}
	return mc
}

func passwordFrom(get func() (string, error)) func(context.Context, *mysql.Config) error {
	return func(_ context.Context, mc *mysql.Config) error {
		if get == nil {
			return nil
		}
		password, err := get()
		if err != nil {
			return fmt.Errorf("read password: %w", err)
		}
		mc.Passwd = password
		return nil
	}
}

// Connect implements driver.Connector. The error names every endpoint.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	first := int(c.good.Load())
	var errs []error
	for i := range c.endpoints {
		n := (first + i) % len(c.endpoints)
		conn, err := c.endpoints[n].connect(ctx, c.timeout)
		if err == nil {
			c.good.Store(int64(n))
			return conn, nil
		}
		errs = append(errs, fmt.Errorf("connect to TiDB %s: %w", c.endpoints[n].address, err))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// Driver implements driver.Connector.
func (c *connector) Driver() driver.Driver { return &mysql.MySQLDriver{} }

func (e endpoint) connect(ctx context.Context, timeout time.Duration) (conn driver.Conn, err error) {
	// A server that is no MySQL server at all can make the driver read past the
	// end of its greeting. The pool may connect in a goroutine of its own, where
	// a panic would end the process, so it has to be caught here. What the driver
	// had opened by then (one socket, one goroutine) is lost.
	defer recoverTo(&err)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err = e.Connect(ctx)
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("no answer within %v: %w", timeout, context.DeadlineExceeded)
	case errors.As(err, new(x509.HostnameError)):
		return nil, fmt.Errorf("%w (set tls.server_name to a name in the server's certificate)", err)
	case errors.Is(err, driver.ErrBadConn):
		// Passed on as it is, it would make database/sql try all over again.
		return nil, fmt.Errorf("connection lost during login: %v", err) //nolint:errorlint // hidden on purpose
	}
	return nil, err
}

func recoverTo(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("mysql driver panicked: %v", p)
	}
}
