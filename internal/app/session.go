package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/brctl/brctl/internal/cluster"
	"github.com/brctl/brctl/internal/config"
	"github.com/brctl/brctl/internal/engine/br"
	"github.com/brctl/brctl/internal/pd"
	"github.com/brctl/brctl/internal/scrape"
	"github.com/brctl/brctl/internal/tlsfiles"
	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/tidbcfg"
)

// LoadConfig reads a configuration; its error says everything that is wrong
// with it.
func LoadConfig(path string) (*config.Config, error) {
	cfg, err := config.Load(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &Error{Kind: KindConfig, Err: err, Hint: "name the configuration file with -c"}
	}
	if err != nil {
		return nil, &Error{Kind: KindConfig, Err: err}
	}
	if err := cfg.Absolute(); err != nil {
		return nil, &Error{Kind: KindConfig, Err: err}
	}
	return cfg, nil
}

// target is what a schedule's name stands for.
type target struct {
	cfg      *config.Config
	schedule config.Schedule
	cluster  config.Cluster
	storage  config.Storage
}

func findTarget(path, schedule string) (target, error) {
	cfg, err := LoadConfig(path)
	if err != nil {
		return target{}, err
	}
	s, ok := cfg.FindSchedule(schedule)
	if !ok {
		return target{}, trouble(KindNotFound, fmt.Sprintf("the schedules of %s are: %s", path, strings.Join(cfg.ScheduleNames(), ", ")), "no schedule %q", schedule)
	}
	c, _ := cfg.FindCluster(s.Cluster)
	st, _ := cfg.FindStorage(s.Storage)
	return target{cfg: cfg, schedule: s, cluster: c, storage: st}, nil
}

// session holds the clients of one cluster. Making it connects to nothing.
type session struct {
	conf   config.Cluster
	pd     *pd.Client
	sql    *tidbcfg.Client
	status *scrape.Scraper
	engine *br.Engine
}

func openSession(c config.Cluster) (*session, error) {
	pdClient, err := openPD(c.PD)
	if err != nil {
		return nil, trouble(KindConfig, "", "cluster %s: pd: %w", c.Name, err)
	}
	sql, err := openSQL(c.TiDB)
	if err != nil {
		return nil, trouble(KindConfig, "", "cluster %s: tidb: %w", c.Name, errors.Join(err, pdClient.Close()))
	}
	statusTLS, err := tlsfiles.Files(c.TiKV.TLS).Load()
	if err != nil {
		return nil, trouble(KindConfig, "", "cluster %s: tikv: %w", c.Name, errors.Join(err, pdClient.Close(), sql.Close()))
	}
	return &session{
		conf: c, pd: pdClient, sql: sql,
		status: scrape.New(scrape.Options{Timeout: time.Duration(c.TiKV.Timeout), TLS: statusTLS}),
		engine: br.New(br.Config{Binary: c.BR.Path, Grace: time.Duration(c.BR.StopGrace)}),
	}, nil
}

func openPD(p config.PD) (*pd.Client, error) {
	tls, err := tlsfiles.Files(p.TLS).Load()
	if err != nil {
		return nil, err
	}
	return pd.New(pd.Config{Endpoints: p.Endpoints, TLS: tls, Timeout: time.Duration(p.Timeout)})
}

func openSQL(t config.TiDB) (*tidbcfg.Client, error) {
	tls, err := tlsfiles.Files(t.TLS).Load()
	if err != nil {
		return nil, err
	}
	source := t.PasswordSource()
	if _, err := source.Read(); err != nil { // said now, and not as an unreachable TiDB later
		return nil, err
	}
	return tidbcfg.New(tidbcfg.Config{
		Endpoints: t.Endpoints, User: t.User,
		Password: func() (string, error) {
			secret, err := source.Read()
			return secret.Reveal(), err
		},
		TLS:            tls,
		ConnectTimeout: time.Duration(t.ConnectTimeout), StatementTimeout: time.Duration(t.StatementTimeout),
	})
}

func (s *session) close() error {
	s.status.Close()
	return errors.Join(s.sql.Close(), s.pd.Close())
}

// clusterID asks PD which cluster this is: the first thing that needs PD.
func (s *session) clusterID(ctx context.Context) (uint64, error) {
	id, err := s.pd.ClusterID(ctx)
	if err != nil {
		return 0, trouble(KindUnavailable, "is PD up, and are clusters[].pd.endpoints right?", "ask PD at %v: %w", s.conf.PD.Endpoints, err)
	}
	return id, nil
}

// Cluster implements runner.Topology: everything that planning needs, the base
// load of this moment included.
func (s *session) Cluster(ctx context.Context) (policy.Cluster, error) {
	c, err := cluster.Load(ctx, cluster.Sources{
		Name: s.conf.Name, PD: s.pd, HostCores: s.hostCores(),
		Quota: s.quota, Hardware: s.hardware, RegionBytes: s.regionBytes, Tables: s.sql.TableCount,
	})
	if err == nil {
		s.readTiKVSettings(ctx, &c)
		cluster.MeasureBase(ctx, &c, cluster.BaseWindow, s.sample, func(before, after scrape.Sample) (float64, bool) {
			used := scrape.CoresUsed(before, after)
			return used.V, used.Known
		})
	}
	return c, err
}

// storeList is the topology that putting settings back needs: PD's cluster id
// and list of stores, and nothing that could keep it waiting.
type storeList struct{ pd *pd.Client }

// Cluster implements journal.Topology.
func (l storeList) Cluster(ctx context.Context) (policy.Cluster, error) {
	id, err := l.pd.ClusterID(ctx)
	if err != nil {
		return policy.Cluster{}, err
	}
	stores, err := l.pd.Stores(ctx)
	return policy.Cluster{ID: id, Stores: stores}, err
}

func (s *session) sample(ctx context.Context, store policy.Store) (scrape.Sample, error) {
	return s.status.Store(ctx, store.StatusAddress)
}

// Stores implements runner.Topology.
func (s *session) Stores(ctx context.Context) ([]policy.Store, error) { return s.pd.Stores(ctx) }

func (s *session) hostCores() map[string]float64 {
	cores := make(map[string]float64, len(s.conf.Hosts))
	for _, h := range s.conf.Hosts {
		cores[h.Name] = h.Cores
	}
	return cores
}

func (s *session) quota(ctx context.Context, store policy.Store) (float64, error) {
	sample, err := s.status.Store(ctx, store.StatusAddress)
	if err != nil {
		return 0, err
	}
	return sample.Cores.V, nil
}

// regionBytes reads the region size over SQL, which answers for a TiKV whose
// status port is not reachable from here.
func (s *session) regionBytes(ctx context.Context, store policy.Store) (uint64, error) {
	key := policy.SettingKey{Instance: store.Address, Name: "coprocessor.region-split-size"}
	readings := s.sql.Read(ctx, []policy.SettingKey{key})
	switch {
	case len(readings) == 0:
		return 0, fmt.Errorf("no answer for %s", key)
	case !readings[0].Known:
		return 0, readings[0].Err
	}
	return policy.ParseBytes(readings[0].Value)
}

// logDir is where br's logs of this state directory are.
func (t target) logDir() string { return filepath.Join(t.cfg.State.Dir, "log", "br") }

// base is the part of the storage URL that the schedule's runs share.
func (t target) base() string {
	return strings.TrimRight(t.storage.URL, "/") + "/" + t.cluster.Name + "/" + t.schedule.Name
}
