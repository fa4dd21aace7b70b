package scrape

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// DefaultTimeout bounds one scrape, from dialling to the page's last line.
const DefaultTimeout = 5 * time.Second

const idleTimeout = 90 * time.Second

// Options say how to reach status ports.
type Options struct {
	Timeout time.Duration // 0: DefaultTimeout
	TLS     *tls.Config   // nil: plain HTTP
}

// Scraper fetches pages. It is safe for concurrent use.
type Scraper struct {
	client  *http.Client
	scheme  string
	timeout time.Duration
}

// New returns a Scraper. It keeps one idle connection per store, goes through
// no proxy and follows no redirect: a status port does not redirect, and what
// does is something else.
func New(o Options) *Scraper {
	s := &Scraper{scheme: "http", timeout: o.Timeout}
	if s.timeout <= 0 {
		s.timeout = DefaultTimeout
	}
	if o.TLS != nil {
		s.scheme = "https"
	}
	s.client = &http.Client{
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{}).DialContext,
			TLSClientConfig:     o.TLS,
			DisableCompression:  true,
			MaxIdleConnsPerHost: 1,
			IdleConnTimeout:     idleTimeout,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s
}

// Close closes idle connections.
func (s *Scraper) Close() { s.client.CloseIdleConnections() }

// Store reads the page of one store.
func (s *Scraper) Store(ctx context.Context, statusAddress string) (Sample, error) {
	sample, err := s.fetch(ctx, statusAddress)
	if err != nil {
		return Sample{}, fmt.Errorf("scrape %s: %w", statusAddress, s.explain(ctx, err))
	}
	return sample, nil
}

func (s *Scraper) fetch(ctx context.Context, statusAddress string) (Sample, error) {
	if err := validateAddress(statusAddress); err != nil {
		return Sample{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	page := url.URL{Scheme: s.scheme, Host: statusAddress, Path: "/metrics"}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page.String(), nil)
	if err != nil {
		return Sample{}, err
	}
	req.Header.Set("Accept", "text/plain; version=0.0.4")
	resp, err := s.client.Do(req)
	if err != nil {
		return Sample{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	at := time.Now()
	if resp.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, resp.Body, lineBuffer) // so that the connection can be used again
		return Sample{}, fmt.Errorf("status %s", resp.Status)
	}
	sample, err := Parse(resp.Body)
	sample.At = at
	return sample, err
}

// explain drops the URL that net/http repeats and names the timeout.
func (s *Scraper) explain(ctx context.Context, err error) error {
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no page within %v: %w", s.timeout, context.DeadlineExceeded)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// ErrNoStatusAddress means that a store runs without a status port: what it
// does is unknown.
var ErrNoStatusAddress = errors.New("store has no status address")

// validateAddress refuses an address without a host. A store that was set up
// without advertise-status-addr says 0.0.0.0; dialling that would read whatever
// TiKV runs on our own host, in the name of every such store.
func validateAddress(statusAddress string) error {
	if statusAddress == "" {
		return ErrNoStatusAddress
	}
	host, _, err := net.SplitHostPort(statusAddress)
	if err != nil {
		return err
	}
	if unspecified(host) {
		return fmt.Errorf("%q names no host", statusAddress)
	}
	return nil
}

func unspecified(host string) bool {
	if host == "" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsUnspecified()
}
