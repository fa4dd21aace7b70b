package tidbcfg_test

import (
	"context"
	"testing"
	"time"

	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/tidbcfg"
	"github.com/brctl/brctl/pkg/tidbcfg/tidbcfgtest"
)

// Addresses of the TiKVs of the tests. They are names in the fake only.
const (
	kv1 = "192.0.2.21:20160"
	kv2 = "192.0.2.22:20160"
	kv3 = "192.0.2.23:20160"
	kv4 = "192.0.2.24:20160"
	kv5 = "192.0.2.25:20160"
)

func tikvs(addresses ...string) []tidbcfgtest.TiKV {
	var out []tidbcfgtest.TiKV
	for _, a := range addresses {
		out = append(out, tidbcfgtest.TiKV{Address: a, StatusAddress: policy.HostOf(a) + ":20180"})
	}
	return out
}

// short keeps tests with a hanging server fast. A loaded machine must still
// answer a healthy statement within it.
const short = 700 * time.Millisecond

func newClient(t *testing.T, change func(*tidbcfg.Config), endpoints ...string) *tidbcfg.Client {
	t.Helper()
	cfg := tidbcfg.Config{Endpoints: endpoints, User: "brctl"}
	if change != nil {
		change(&cfg)
	}
	c, err := tidbcfg.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

func shortTimeouts(cfg *tidbcfg.Config) {
	cfg.ConnectTimeout = short
	cfg.StatementTimeout = short
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// ping reports whether any endpoint accepts the client and answers.
func ping(t *testing.T, client *tidbcfg.Client) error {
	t.Helper()
	return client.CheckGrants(testContext(t))
}
