package pd_test

import (
	"net/url"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/brctl/brctl/internal/pd/pdtest"
)

// etcdPD is a real etcd that also serves FakePD's gRPC on its client port, as
// PD itself is built.
type etcdPD struct {
	url  string
	etcd *embed.Etcd
	once sync.Once
}

// startEtcd runs an etcd of one member, with short elections, since the least
// lease that etcd grants is one and a half of them. Options change its
// configuration.
func startEtcd(t *testing.T, options ...func(*embed.Config)) *etcdPD {
	t.Helper()
	local := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config := embed.NewConfig()
	config.Dir = t.TempDir()
	config.ListenClientUrls, config.ListenPeerUrls = []url.URL{local}, []url.URL{local}
	for _, option := range options {
		option(config)
	}
	config.TickMs, config.ElectionMs = 10, 100
	config.UnsafeNoFsync = true
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	pd := &etcdPD{}
	fake := pdtest.New()
	config.ServiceRegister = fake.Register
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatalf("start etcd: %v", err)
	}
	pd.etcd = etcd
	t.Cleanup(pd.stop)
	pd.url = config.ListenClientUrls[0].Scheme + "://" + etcd.Clients[0].Addr().String()
	fake.SetURL(pd.url)
	select {
	case <-etcd.Server.ReadyNotify():
	case <-time.After(30 * time.Second):
		t.Fatal("etcd is not ready after 30 s")
	}
	return pd
}

func (p *etcdPD) stop() { p.once.Do(p.etcd.Close) }

// client is an operator's etcdctl.
func (p *etcdPD) client(t *testing.T) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{p.url}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
