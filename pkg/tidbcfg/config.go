package tidbcfg

import (
	"crypto/tls"
	"errors"
	"fmt"
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
	TLS      *tls.Config // nil: plain text

	ConnectTimeout   time.Duration // per endpoint: dial, TLS handshake and login
	StatementTimeout time.Duration // per statement, as seen by the caller; see Hardware before going below 10 s
	ReadTimeout      time.Duration // per network read; default: StatementTimeout + 5 s
	WriteTimeout     time.Duration // per network write

	// Parallel is how many instances are read or changed at once.
	Parallel int
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
	return errors.Join(problems...)
}
