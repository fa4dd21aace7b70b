package tidbcfg_test

import (
	"strings"
	"testing"

	"github.com/brctl/brctl/pkg/tidbcfg"
)

func TestEndpointIsHostAndPortOrTheErrorSaysWhatToWrite(t *testing.T) {
	tests := []struct{ in, want string }{
		{"192.0.2.1:4000", ""},
		{"tidb-0.example:4000", ""},
		{"[2001:db8::1]:4000", ""},
		{"", `empty (want host:port, for example "192.0.2.1:4000")`},
		{"192.0.2.1", `port missing (got "192.0.2.1", want "192.0.2.1:4000")`},
		{"tidb-0", `port missing (got "tidb-0", want "tidb-0:4000")`},
		{"2001:db8::1", `port missing and IPv6 address without brackets (got "2001:db8::1", want "[2001:db8::1]:4000")`},
		{"[2001:db8::1]", `port missing (got "[2001:db8::1]", want "[2001:db8::1]:4000")`},
		{"2001:db8:0:0:0:0:0:1:4000", `IPv6 address needs brackets (got "2001:db8:0:0:0:0:0:1:4000", want "[2001:db8:0:0:0:0:0:1]:4000")`},
		{"192.0.2.1:0", `port is not a number from 1 to 65535 (got "192.0.2.1:0", want "host:port")`},
		{"192.0.2.1:mysql", `port is not a number from 1 to 65535 (got "192.0.2.1:mysql", want "host:port")`},
		{"192.0.2.1:70000", `port is not a number from 1 to 65535 (got "192.0.2.1:70000", want "host:port")`},
		{":4000", `not a host name or address (got ":4000", want "host:port")`},
		{"a'b:4000", `not a host name or address (got "a'b:4000", want "host:port")`},
		{"/tmp/mysql.sock", `is a socket path (got "/tmp/mysql.sock", want host:port)`},
		{"mysql://192.0.2.1:4000/", `has a scheme (got "mysql://192.0.2.1:4000/", want host:port)`},
		{"root:s3cret@tcp(192.0.2.1:4000)/mysql?strict=true", "is a DSN (want host:port only; user and password are fields of their own)"},
		{"mysql://root:s3cret@192.0.2.1:4000/", "is a DSN (want host:port only; user and password are fields of their own)"},
	}
	for _, tt := range tests {
		got := ""
		if err := tidbcfg.ValidateEndpoint(tt.in); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("ValidateEndpoint(%q):\n got %s\nwant %s", tt.in, got, tt.want)
		}
		if strings.Contains(got, "s3cret") {
			t.Errorf("ValidateEndpoint(%q) repeats the password", tt.in)
		}
	}
}
