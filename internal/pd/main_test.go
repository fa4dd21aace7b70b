package pd_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/brctl/brctl/internal/pd"
	"github.com/brctl/brctl/internal/pd/pdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newClient returns a client of the endpoints that ends with the test.
func newClient(t *testing.T, timeout time.Duration, endpoints ...string) *pd.Client {
	t.Helper()
	c, err := pd.New(pd.Config{Endpoints: endpoints, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close client: %v", err)
		}
	})
	return c
}

// startOne returns a cluster of one member and a client of it.
func startOne(t *testing.T) (*pdtest.FakePD, *pd.Client) {
	t.Helper()
	fake := pdtest.Start(t, 1)
	return fake, newClient(t, 5*time.Second, fake.URLs()...)
}
