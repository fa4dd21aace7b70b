package bed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sync/errgroup"

	"github.com/brctl/brctl/lab/internal/engine"
	"github.com/brctl/brctl/lab/internal/labinfo"
	"github.com/brctl/brctl/lab/internal/standin"
)

func (b *Bed) startStandins(ctx context.Context, group *errgroup.Group) error {
	places, err := b.places(ctx)
	if err != nil {
		return err
	}
	stores := make([]engine.Store, 0, len(places))
	for _, p := range places {
		stores = append(stores, engine.Store{ID: p.ID, Address: p.Address})
	}
	b.regions, err = engine.OpenRegions(ctx, b.path("regions"), b.client, stores, b.opts.Shape.Replicas)
	if err != nil {
		return err
	}
	b.engine, err = engine.Open(ctx, b.path("engine"), b.client, b.regions)
	if err != nil {
		return err
	}
	b.cluster, err = standin.New(standin.Config{
		Shape: b.opts.Shape, Dir: b.opts.Dir, PD: b.client,
		Regions: b.regions, Engine: b.engine, Events: b.recorder,
	}, places)
	if err != nil {
		return err
	}
	if err := b.cluster.Start(); err != nil {
		return err
	}
	if err := b.bootstrap(ctx); err != nil {
		return err
	}
	if err := b.cluster.Register(ctx); err != nil {
		return err
	}
	b.regions.Report()
	group.Go(func() error { return b.cluster.Run(ctx) })
	return nil
}

// bootstrap makes PD's cluster, once.
func (b *Bed) bootstrap(ctx context.Context) error {
	done, err := b.client.IsBootstrapped(ctx)
	if err != nil {
		return fmt.Errorf("ask PD whether it is bootstrapped: %w", err)
	}
	if done {
		return nil
	}
	resp, err := b.client.Bootstrap(ctx, b.cluster.Meta(0), b.regions.Root())
	if err != nil {
		return fmt.Errorf("bootstrap PD: %w", err)
	}
	if e := resp.GetHeader().GetError(); e != nil {
		return fmt.Errorf("bootstrap PD: %s", e.GetMessage())
	}
	return nil
}

// places gives every store its id, which it keeps for good, and its addresses.
func (b *Bed) places(ctx context.Context) ([]standin.Place, error) {
	ids, err := b.storeIDs(ctx)
	if err != nil {
		return nil, err
	}
	sh := b.opts.Shape
	places := make([]standin.Place, 0, len(ids))
	for i, id := range ids {
		p, err := b.place(i, id)
		if err != nil {
			return nil, err
		}
		places = append(places, p)
		b.info.Stores = append(b.info.Stores, labinfo.Store{
			ID: id, Address: p.Address, StatusAddress: p.StatusAddress, Host: sh.Host(i),
		})
	}
	return places, b.ports.Save()
}

func (b *Bed) place(index int, id uint64) (standin.Place, error) {
	host := b.opts.Shape.Host(index)
	p := standin.Place{ID: id, Host: index % b.opts.Shape.Hosts}
	var err error
	if p.Address, err = b.ports.Address(fmt.Sprintf("tikv-%d", index+1), host); err != nil {
		return p, err
	}
	p.StatusAddress, err = b.ports.Address(fmt.Sprintf("tikv-%d-status", index+1), host)
	return p, err
}

func (b *Bed) storeIDs(ctx context.Context) ([]uint64, error) {
	var ids []uint64
	file := b.path("stores.json")
	data, err := os.ReadFile(file)
	if err == nil {
		if err := json.Unmarshal(data, &ids); err != nil {
			return nil, fmt.Errorf("parse %s: %w", file, err)
		}
		return ids, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read store ids: %w", err)
	}
	for range b.opts.Shape.Stores() {
		id, err := b.client.AllocID(ctx)
		if err != nil {
			return nil, fmt.Errorf("allocate store id: %w", err)
		}
		ids = append(ids, id)
	}
	if data, err = json.Marshal(ids); err != nil {
		return nil, fmt.Errorf("encode store ids: %w", err)
	}
	return ids, labinfo.WriteFile(file, data)
}
