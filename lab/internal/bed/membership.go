package bed

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/brctl/brctl/lab/internal/labinfo"
)

// tombstoneTimeout covers PD's own check of its stores, which comes round every ten seconds.
const tombstoneTimeout = time.Minute

// AddStore starts one more stand-in, on the host whose turn it is, and returns its place.
func (b *Bed) AddStore(ctx context.Context) (labinfo.Store, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id, err := b.client.AllocID(ctx)
	if err != nil {
		return labinfo.Store{}, fmt.Errorf("allocate store id: %w", err)
	}
	p, err := b.place(len(b.stores), id)
	if err != nil {
		return labinfo.Store{}, err
	}
	b.stores = append(b.stores, member{ID: id})
	if err := b.saveStores(b.stores); err != nil {
		return labinfo.Store{}, err
	}
	if err := b.ports.Save(); err != nil {
		return labinfo.Store{}, err
	}
	if err := b.cluster.Join(ctx, p); err != nil {
		return labinfo.Store{}, err
	}
	return b.info.Stores[len(b.info.Stores)-1], b.info.Write(b.opts.Dir)
}

// OfflineStore makes PD take a store as leaving. It keeps its regions and leaders, for nothing moves in a lab.
func (b *Bed) OfflineStore(ctx context.Context, id uint64) error {
	return b.pdCall(ctx, http.MethodDelete, fmt.Sprintf("/pd/api/v1/store/%d", id), nil, nil)
}

// RemoveStore moves everything off a store, waits until PD has buried it, and ends it.
func (b *Bed) RemoveStore(ctx context.Context, id uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, err := b.cluster.Store(id)
	if err != nil {
		return err
	}
	if err := b.OfflineStore(ctx, id); err != nil {
		return err
	}
	if err := b.regions.Evict(ctx, id); err != nil {
		return fmt.Errorf("evict store %d: %w", id, err)
	}
	if err := poll(ctx, tombstoneTimeout, func() error { return b.buried(ctx, id) }); err != nil {
		return err
	}
	b.cluster.Leave(s)
	b.info.Stores = slices.DeleteFunc(b.info.Stores, func(s labinfo.Store) bool { return s.ID == id })
	for i := range b.stores {
		b.stores[i].Removed = b.stores[i].Removed || b.stores[i].ID == id
	}
	if err := b.saveStores(b.stores); err != nil {
		return err
	}
	return b.info.Write(b.opts.Dir)
}

func (b *Bed) buried(ctx context.Context, id uint64) error {
	var answer struct {
		Store struct {
			StateName string `json:"state_name"`
		} `json:"store"`
	}
	if err := b.pdGet(ctx, fmt.Sprintf("/pd/api/v1/store/%d", id), &answer); err != nil {
		return err
	}
	if answer.Store.StateName != "Tombstone" {
		return fmt.Errorf("store %d is %s", id, answer.Store.StateName)
	}
	return nil
}
