package bed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/pingcap/kvproto/pkg/pdpb"
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
	if err := b.introduce(ctx); err != nil {
		return err
	}
	group.Go(func() error { return b.cluster.Run(ctx) })
	return nil
}

// introduce opens the stand-ins' ports and makes PD know them and their regions.
func (b *Bed) introduce(ctx context.Context) error {
	if err := b.cluster.Start(); err != nil {
		return err
	}
	if err := b.bootstrap(ctx); err != nil {
		return err
	}
	if err := b.configurePD(ctx); err != nil {
		return fmt.Errorf("configure PD: %w", err)
	}
	if err := b.cluster.Register(ctx); err != nil {
		return err
	}
	b.regions.Report()
	b.client.SetRegionHeartbeatResponseHandler(func(r *pdpb.RegionHeartbeatResponse) {
		if r.GetSplitRegion() != nil {
			go b.regions.Obey(ctx, r.SplitRegion)
		}
	})
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

// member is a store as stores.json remembers it; its position gives its directory, its ports and its host.
type member struct {
	ID      uint64 `json:"id"`
	Removed bool   `json:"removed,omitempty"`
}

// places gives every store its id, which it keeps for good, and its addresses.
func (b *Bed) places(ctx context.Context) ([]standin.Place, error) {
	stores, err := b.loadStores(ctx)
	if err != nil {
		return nil, err
	}
	b.stores = stores
	var places []standin.Place
	for i, m := range stores {
		if m.Removed {
			continue
		}
		p, err := b.place(i, m.ID)
		if err != nil {
			return nil, err
		}
		places = append(places, p)
	}
	return places, b.ports.Save()
}

func (b *Bed) place(index int, id uint64) (standin.Place, error) {
	host := b.opts.Shape.Host(index)
	p := standin.Place{Index: index, ID: id, Host: index % b.opts.Shape.Hosts}
	var err error
	if p.Address, err = b.ports.Address(fmt.Sprintf("tikv-%d", index+1), host); err != nil {
		return p, err
	}
	if p.StatusAddress, err = b.ports.Address(fmt.Sprintf("tikv-%d-status", index+1), host); err != nil {
		return p, err
	}
	b.info.Stores = append(b.info.Stores, labinfo.Store{
		ID: id, Address: p.Address, StatusAddress: p.StatusAddress, Host: host,
	})
	return p, nil
}

func (b *Bed) loadStores(ctx context.Context) ([]member, error) {
	var stores []member
	data, err := os.ReadFile(b.path("stores.json"))
	if err == nil {
		if err := json.Unmarshal(data, &stores); err != nil {
			return nil, fmt.Errorf("parse stores.json: %w", err)
		}
		return stores, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read stores: %w", err)
	}
	for range b.opts.Shape.Stores() {
		id, err := b.client.AllocID(ctx)
		if err != nil {
			return nil, fmt.Errorf("allocate store id: %w", err)
		}
		stores = append(stores, member{ID: id})
	}
	return stores, b.saveStores(stores)
}

func (b *Bed) saveStores(stores []member) error {
	data, err := json.Marshal(stores)
	if err != nil {
		return fmt.Errorf("encode stores: %w", err)
	}
	return labinfo.WriteFile(b.path("stores.json"), data)
}
