package pd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
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
	TLS       *tls.Config // nil: plain text
	// Timeout bounds every call as a whole, all endpoints and retries
	// included; zero means DefaultTimeout.
	Timeout time.Duration
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
