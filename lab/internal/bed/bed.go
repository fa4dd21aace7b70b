// Package bed puts a lab together: real PD and TiDB as child processes, the TiKV stand-ins in this process, tables with
// real rows, and the files that tell others where everything is.
package bed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	unistore "github.com/pingcap/tidb/pkg/store/mockstore/unistore/pd"
	"github.com/pingcap/tidb/pkg/store/mockstore/unistore/tikv"
	pd "github.com/tikv/pd/client"
	"golang.org/x/sync/errgroup"

	"github.com/brctl/brctl/lab/internal/child"
	"github.com/brctl/brctl/lab/internal/engine"
	"github.com/brctl/brctl/lab/internal/events"
	"github.com/brctl/brctl/lab/internal/labinfo"
	"github.com/brctl/brctl/lab/internal/ports"
	"github.com/brctl/brctl/lab/internal/shape"
	"github.com/brctl/brctl/lab/internal/standin"
)

// Options say what lab to run and where.
type Options struct {
	Dir   string // absolute
	Bin   string // where br, tidb-server and pd-server are
	Shape shape.Shape
	Say   func(format string, args ...any) // one line per stage
}

// Bed is a lab that is up or coming up.
type Bed struct {
	opts     Options
	ports    *ports.Book
	recorder *events.Recorder
	info     labinfo.Info

	mu      sync.Mutex       // guards info and stores once the lab is up
	members []*child.Process // PD
	tidb    *child.Process
	client  unistore.Client // PD, as a store sees it
	pd      pd.Client       // PD, as everybody else sees it
	engine  *tikv.Server
	regions *engine.Regions
	cluster *standin.Cluster
	stores  []member // as in stores.json
}

// stopGrace is how long a child may take to end by itself.
const stopGrace = 5 * time.Second

// Run brings the lab up, keeps it up until the context ends and takes it down.
func Run(ctx context.Context, opts Options) (err error) {
	b := &Bed{opts: opts, recorder: &events.Recorder{}}
	if err := b.prepare(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.down()) }()
	group, ctx := errgroup.WithContext(ctx)
	err = b.up(ctx, group)
	if err == nil {
		opts.Say("ready: SQL %s, PD %s, lab.json and brctl.yaml in %s", b.info.SQLAddress, b.info.PDEndpoints[0], opts.Dir)
		err = group.Wait()
		opts.Say("stopping")
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (b *Bed) prepare() error {
	for _, sub := range []string{"log", "secrets", "backups", "state"} {
		if err := os.MkdirAll(b.path(sub), 0o755); err != nil {
			return fmt.Errorf("make lab directory: %w", err)
		}
	}
	if err := os.Remove(b.path(labinfo.FileName)); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("remove former %s: %w", labinfo.FileName, err)
	}
	book, err := ports.Open(b.path("ports.json"))
	if err != nil {
		return err
	}
	b.ports = book
	b.info = labinfo.Info{BRPath: filepath.Join(b.opts.Bin, "br"), Shape: b.opts.Shape, SQLHost: shape.HostName(0)}
	return nil
}

func (b *Bed) path(parts ...string) string {
	return filepath.Join(append([]string{b.opts.Dir}, parts...)...)
}

// up goes through the stages in order; each says what it does.
func (b *Bed) up(ctx context.Context, group *errgroup.Group) error {
	stages := []struct {
		text string
		run  func(context.Context, *errgroup.Group) error
	}{
		{"starting PD", b.startPD},
		{"starting the TiKV stand-ins", b.startStandins},
		{"starting TiDB", b.startTiDB},
		{"filling the tables", b.fill},
		{"starting the admin API", b.startAdmin},
		{"writing lab.json and brctl.yaml", b.publish},
	}
	for _, stage := range stages {
		b.opts.Say("%s", stage.text)
		if err := stage.run(ctx, group); err != nil {
			return fmt.Errorf("%s: %w", stage.text, err)
		}
	}
	return nil
}

// down takes everything away in the reverse order. The stand-ins end with the context.
func (b *Bed) down() error {
	var errs []error
	if err := os.Remove(b.path(labinfo.FileName)); err != nil && !os.IsNotExist(err) {
		errs = append(errs, err)
	}
	if b.tidb != nil {
		errs = append(errs, b.tidb.Stop(stopGrace))
	}
	if b.engine != nil {
		b.engine.Stop()
	}
	if b.client != nil {
		b.client.Close()
	}
	if b.pd != nil {
		b.pd.Close()
	}
	for _, m := range b.members {
		errs = append(errs, m.Stop(stopGrace))
	}
	return errors.Join(errs...)
}
