package tidbcfg

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

const (
	// maxIdle connections are kept; after an outage each of them costs one
	// attempt before a new one is opened.
	maxIdle     = 2
	maxIdleTime = time.Minute
	maxLifetime = 10 * time.Minute // so that brctl returns to a load balancer's choice
)

// Client talks to the TiDB servers of one cluster. It is safe for concurrent
// use.
type Client struct {
	cfg Config
	db  *sql.DB
}

// New checks cfg. It does not connect; the first method that needs a connection
// does.
func New(cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("configure TiDB access: %w", err)
	}
	connector, err := newConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("configure TiDB access: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(maxIdle)
	db.SetConnMaxIdleTime(maxIdleTime)
	db.SetConnMaxLifetime(maxLifetime)
	return &Client{cfg: cfg, db: db}, nil
}

// Close closes all connections. A statement that is running is given up.
func (c *Client) Close() error { return c.db.Close() }

// query runs one statement on a session of its own.
func (c *Client) query(ctx context.Context, statement string) ([][]string, []string, error) {
	s, err := c.session(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer s.close()
	rows, err := s.query(ctx, statement)
	if err != nil {
		return nil, nil, err
	}
	warnings, err := s.warnings(ctx)
	return rows, warnings, err
}

// session returns a connection that has just answered. A statement on a
// session is sent once and never repeated, so the stale connections that
// every pool holds after an outage have to be found before.
func (c *Client) session(ctx context.Context) (*session, error) {
	var err error
	for range maxIdle + 1 {
		var s *session
		if s, err = c.open(ctx); err == nil {
			return s, nil
		}
		if ctx.Err() != nil || !errors.Is(err, errStale) {
			break
		}
	}
	return nil, err
}

var errStale = errors.New("pooled connection is gone")

func (c *Client) open(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.ConnectTimeout*time.Duration(len(c.cfg.Endpoints)+1))
	defer cancel()
	conn, err := c.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{conn: conn, timeout: c.cfg.StatementTimeout}
	if err := s.ping(ctx, c.cfg.ConnectTimeout); err != nil {
		s.discard()
		return nil, fmt.Errorf("%w: %w", errStale, err)
	}
	return s, nil
}
