package tidbcfg

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// hostPattern is a DNS name or an IPv4 address: nothing that could end a quoted
// SQL string.
var hostPattern = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?$`)

const maxHostLength = 253

// ValidateEndpoint checks that s is host:port and says what to write instead.
// It does not repeat a text that may hold a password.
func ValidateEndpoint(s string) error {
	switch {
	case s == "":
		return errors.New(`empty (want host:port, for example "192.0.2.1:4000")`)
	case strings.Contains(s, "@"):
		return errors.New("is a DSN (want host:port only; user and password are fields of their own)")
	case strings.Contains(s, "://"):
		return fmt.Errorf("has a scheme (got %q, want host:port)", s)
	case strings.HasPrefix(s, "/"):
		return fmt.Errorf("is a socket path (got %q, want host:port)", s)
	}
	if err := validateHostPort(s); err != nil {
		return fmt.Errorf("%w (got %q, want %q)", err, s, suggestion(s))
	}
	return nil
}

// validateHostPort accepts name:port, v4:port and [v6]:port.
func validateHostPort(s string) error {
	if bare, err := netip.ParseAddr(s); err == nil && bare.Is6() {
		return errors.New("port missing and IPv6 address without brackets")
	}
	if strings.Count(s, ":") > 1 && !strings.HasPrefix(s, "[") {
		return errors.New("IPv6 address needs brackets")
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return errors.New("port missing")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errors.New("port is not a number from 1 to 65535")
	}
	return validateHost(host, strings.HasPrefix(s, "["))
}

func validateHost(host string, bracketed bool) error {
	if bracketed {
		addr, err := netip.ParseAddr(host)
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return errors.New("not an IPv6 address in brackets")
		}
		return nil
	}
	if len(host) > maxHostLength || !hostPattern.MatchString(host) {
		return errors.New("not a host name or address")
	}
	return nil
}

// suggestion is s as it was probably meant.
func suggestion(s string) string {
	if _, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return net.JoinHostPort(strings.Trim(s, "[]"), "4000")
	}
	if i := strings.LastIndex(s, ":"); i > 0 && strings.Count(s, ":") > 1 {
		if _, err := netip.ParseAddr(s[:i]); err == nil {
			return net.JoinHostPort(s[:i], s[i+1:])
		}
	}
	if hostPattern.MatchString(s) {
		return net.JoinHostPort(s, "4000")
	}
	return "host:port"
}
