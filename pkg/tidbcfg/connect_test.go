package tidbcfg_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/brctl/brctl/internal/tlsfiles"
	"github.com/brctl/brctl/internal/tlsfiles/tlstest"
	"github.com/brctl/brctl/pkg/tidbcfg"
	"github.com/brctl/brctl/pkg/tidbcfg/tidbcfgtest"
)

func TestNewReportsEveryProblemAtOnce(t *testing.T) {
	_, err := tidbcfg.New(tidbcfg.Config{
		Endpoints:      []string{"192.0.2.1", "192.0.2.2:4000"},
		ConnectTimeout: -1,
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`endpoints[0]: port missing (got "192.0.2.1", want "192.0.2.1:4000")`,
		"user: empty",
		"connect_timeout: negative",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "endpoints[1]") {
		t.Errorf("a good endpoint is blamed:\n%v", err)
	}
}

func TestNewDoesNotConnect(t *testing.T) {
	server := tidbcfgtest.New(t)
	server.Close()
	newClient(t, nil, server.Addr())
}

func TestPasswordIsAskedForEachConnection(t *testing.T) {
	server := tidbcfgtest.New(t)
	server.SetPassword("brctl", "first")
	password := "wrong"
	client := newClient(t, func(c *tidbcfg.Config) {
		c.Password = func() (string, error) { return password, nil }
	}, server.Addr())

	err := ping(t, client)
	if err == nil || !strings.Contains(err.Error(), "Access denied for user 'brctl'") {
		t.Errorf("wrong password: %v", err)
	}
	for _, password = range []string{"first", "rotated"} {
		server.SetPassword("brctl", password)
		server.DropConnections()
		if err := ping(t, client); err != nil {
			t.Errorf("password %s: %v", password, err)
		}
	}
}

func TestSecretsDoNotShowInAnError(t *testing.T) {
	server := tidbcfgtest.New(t)
	cfg := tidbcfg.Config{
		Endpoints: []string{server.Addr()},
		User:      "brctl",
		Password:  func() (string, error) { return "s3cret", nil },
	}
	client, err := tidbcfg.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	err = ping(t, client)
	if err == nil {
		t.Fatal("logged in with a wrong password")
	}
	for _, text := range []string{err.Error(), fmt.Sprintf("%+v", cfg), fmt.Sprintf("%#v", cfg), fmt.Sprintf("%+v", client)} {
		if strings.Contains(text, "s3cret") {
			t.Errorf("password shows in %s", text)
		}
	}
}

func TestClientMovesToAnEndpointThatAnswersAndStaysThere(t *testing.T) {
	dead, hung, good := tidbcfgtest.New(t), tidbcfgtest.New(t), tidbcfgtest.New(t)
	dead.Close()
	hung.Stall()
	client := newClient(t, shortTimeouts, dead.Addr(), hung.Addr(), good.Addr())

	began := time.Now()
	if err := ping(t, client); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < short || took > 4*short {
		t.Errorf("first connection took %v, want about one connect timeout (%v)", took, short)
	}
	good.DropConnections()
	began = time.Now()
	if err := ping(t, client); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took >= short {
		t.Errorf("second connection took %v: it asked the hung endpoint again", took)
	}
}

func TestErrorNamesEveryEndpointThatWasTried(t *testing.T) {
	dead, hung := tidbcfgtest.New(t), tidbcfgtest.New(t)
	dead.Close()
	hung.Stall()
	client := newClient(t, shortTimeouts, dead.Addr(), hung.Addr())
	err := ping(t, client)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"connect to TiDB " + dead.Addr() + ": dial tcp",
		"connect to TiDB " + hung.Addr() + ": no answer within 700ms",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
}

// Greetings of servers that are not TiDB; the driver reads past the end of
// some of them.
func TestServerThatIsNotMySQLIsAnErrorAndNoPanic(t *testing.T) {
	for name, greeting := range map[string]string{
		"http":           "HTTP/1.1 400 Bad Request\r\n\r\n",
		"ssh":            "SSH-2.0-OpenSSH_9.6\r\n",
		"cut short":      "\x0b\x00\x00\x00\x0a8.0.11\x00\x01\x00\x00",
		"no terminator":  "\x03\x00\x00\x00\x0aaa",
		"empty":          "\x00\x00\x00\x00",
		"old protocol":   "\x01\x00\x00\x00\x09",
		"closes at once": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := newClient(t, shortTimeouts, greeter(t, greeting))
			err := ping(t, client)
			if err == nil || !strings.HasPrefix(err.Error(), "connect to TiDB ") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// greeter says greeting to every connection and closes it.
func greeter(t *testing.T, greeting string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(greeting))
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

func TestTLSByAddressNeedsTheNameInTheCertificate(t *testing.T) {
	a := tlstest.New(t)
	server := tidbcfgtest.NewTLS(t, a.Server(t, "tidb.example", tls.NoClientCert))
	connect := func(files tlsfiles.Files) error {
		client := newClient(t, func(c *tidbcfg.Config) { c.TLS = tlstest.Load(t, files) }, server.Addr())
		return ping(t, client)
	}
	if err := connect(tlsfiles.Files{CA: a.CAFile(), ServerName: "tidb.example"}); err != nil {
		t.Errorf("with server_name: %v", err)
	}
	err := connect(tlsfiles.Files{CA: a.CAFile()})
	if err == nil || !strings.Contains(err.Error(), "doesn't contain any IP SANs") || !strings.Contains(err.Error(), "tls.server_name") {
		t.Errorf("without server_name: %v", err)
	}
	err = connect(tlsfiles.Files{ServerName: "tidb.example"})
	if err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("without ca: %v", err)
	}
}

func TestTLSIsNeverSilentlyLeftOut(t *testing.T) {
	server := tidbcfgtest.New(t)
	client := newClient(t, func(c *tidbcfg.Config) { c.TLS = &tls.Config{} }, server.Addr())
	if err := ping(t, client); err == nil || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("server without TLS: %v", err)
	}
}

func TestStalledTLSHandshakeEndsWithinTheConnectTimeout(t *testing.T) {
	a, stall := tlstest.New(t), make(chan struct{})
	config := a.Server(t, "tidb.example", tls.NoClientCert)
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		<-stall
		return nil, nil
	}
	server := tidbcfgtest.NewTLS(t, config)
	defer close(stall)
	client := newClient(t, func(c *tidbcfg.Config) {
		shortTimeouts(c)
		c.TLS = tlstest.Load(t, tlsfiles.Files{CA: a.CAFile(), ServerName: "tidb.example"})
	}, server.Addr())
	began := time.Now()
	err := ping(t, client)
	if took := time.Since(began); err == nil || took > 3*short {
		t.Errorf("after %v: %v", took, err)
	}
}
