package bed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	unistore "github.com/pingcap/tidb/pkg/store/mockstore/unistore/pd"
	pd "github.com/tikv/pd/client"
	"golang.org/x/sync/errgroup"

	"github.com/brctl/brctl/lab/internal/child"
	"github.com/brctl/brctl/lab/internal/shape"
)

// pdConfig keeps PD from moving anything: regions stay where the stand-ins put them.
const pdConfig = `[schedule]
leader-schedule-limit = 0
region-schedule-limit = 0
replica-schedule-limit = 0
merge-schedule-limit = 0
hot-region-schedule-limit = 0
`

func (b *Bed) startPD(ctx context.Context, _ *errgroup.Group) error {
	if err := os.WriteFile(b.path("pd.toml"), []byte(pdConfig), 0o644); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	if err := b.layoutPD(); err != nil {
		return err
	}
	for _, m := range b.members {
		if err := m.Start(); err != nil {
			return err
		}
	}
	return b.awaitPD(ctx)
}

// layoutPD gives every member its addresses and its command line.
func (b *Bed) layoutPD() error {
	var peers, clients, initial []string
	for i := range b.opts.Shape.PD {
		client, err := b.ports.Address(fmt.Sprintf("pd-%d-client", i+1), shape.HostName(0))
		if err != nil {
			return err
		}
		peer, err := b.ports.Address(fmt.Sprintf("pd-%d-peer", i+1), shape.HostName(0))
		if err != nil {
			return err
		}
		clients, peers = append(clients, "http://"+client), append(peers, "http://"+peer)
		initial = append(initial, fmt.Sprintf("pd-%d=http://%s", i+1, peer))
	}
	for i := range clients {
		name := fmt.Sprintf("pd-%d", i+1)
		b.members = append(b.members, child.New(child.Spec{
			Name: name, Path: filepath.Join(b.opts.Bin, "pd-server"), Dir: b.opts.Dir,
			Args: []string{
				"--name", name, "--data-dir", b.path(name), "--config", b.path("pd.toml"),
				"--client-urls", clients[i], "--peer-urls", peers[i],
				"--initial-cluster", strings.Join(initial, ","), "--log-file", b.path("log", name+".log"),
			},
			// PD's embedded etcd registers routes that newer Go versions refuse.
			Env:     []string{"GODEBUG=httpmuxgo121=1"},
			LogFile: b.path("log", name+".out"),
		}))
	}
	b.info.PDEndpoints = clients
	return b.ports.Save()
}

// awaitPD waits for a leader and connects to it.
func (b *Bed) awaitPD(ctx context.Context) error {
	err := poll(ctx, time.Minute, func() error {
		if ended, err := b.members[0].Exited(); ended {
			return fmt.Errorf("%w: pd-1 ended (%v), see log/pd-1.out", errGiveUp, err)
		}
		_, err := pdLeader(ctx, b.info.PDEndpoints...)
		return err
	})
	if err != nil {
		return err
	}
	if b.client, err = unistore.NewClient(b.info.PDEndpoints, "stand-in"); err != nil {
		return fmt.Errorf("connect to PD: %w", err)
	}
	if b.pd, err = pd.NewClientWithContext(ctx, b.info.PDEndpoints, pd.SecurityOption{}); err != nil {
		return fmt.Errorf("connect to PD: %w", err)
	}
	b.info.ClusterID = b.client.GetClusterID(ctx)
	return nil
}

// configurePD sets the number of replicas and repeats the limits of the file, because PD prefers what it has stored to
// its file. PD changes its number of replicas only when it is bootstrapped, and a little while after: it answers
// ErrNotBootstrapped until its cluster runs.
func (b *Bed) configurePD(ctx context.Context) error {
	return poll(ctx, time.Minute, func() error {
		return b.pdPost(ctx, "/pd/api/v1/config", map[string]any{
			"max-replicas": b.opts.Shape.Replicas, "leader-schedule-limit": 0, "region-schedule-limit": 0,
			"replica-schedule-limit": 0, "merge-schedule-limit": 0, "hot-region-schedule-limit": 0,
		})
	})
}
