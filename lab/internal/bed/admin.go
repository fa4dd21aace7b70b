package bed

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"golang.org/x/sync/errgroup"

	api "github.com/brctl/brctl/lab/internal/adminapi"
	"github.com/brctl/brctl/lab/internal/shape"
	"github.com/brctl/brctl/lab/internal/standin"
)

// startAdmin serves the admin API, and S3 if wanted. Its actions outlive the request that asked for them where they must (a load replay),
// so they get the lab's context.
func (b *Bed) startAdmin(ctx context.Context, group *errgroup.Group) error {
	if err := b.startS3(ctx, group); err != nil {
		return fmt.Errorf("start S3 server: %w", err)
	}
	addr, err := b.ports.Address("admin", shape.HostName(0))
	if err != nil {
		return err
	}
	b.info.AdminAddress = addr
	if err := b.ports.Save(); err != nil {
		return err
	}
	mux := http.NewServeMux()
	b.routeReads(mux)
	b.routeStores(mux)
	b.routeCluster(ctx, mux)
	return serve(ctx, group, addr, mux)
}

func (b *Bed) routeReads(mux *http.ServeMux) {
	mux.Handle("GET "+api.PathEvents, handle(func(context.Context, struct{}) (any, error) {
		return b.recorder.All(), nil
	}))
	mux.Handle("GET "+api.PathSettings, handle(func(context.Context, struct{}) (any, error) {
		all := []api.Settings{}
		for _, s := range b.cluster.Stores() {
			p := s.Place()
			all = append(all, api.Settings{StoreID: p.ID, Instance: p.Address, Values: s.Settings().Values()})
		}
		return all, nil
	}))
}

func (b *Bed) routeStores(mux *http.ServeMux) {
	onStore := func(path string, f func(context.Context, *standin.Store, string) error) {
		mux.Handle("POST "+path, handle(func(ctx context.Context, r api.Store) (any, error) {
			s, err := b.cluster.Store(r.ID)
			if err != nil {
				return nil, err
			}
			return nil, f(ctx, s, r.State)
		}))
	}
	onStore(api.PathCondition, func(ctx context.Context, s *standin.Store, state string) error {
		return s.SetCondition(ctx, standin.Condition(state))
	})
	onStore(api.PathConfigMode, func(_ context.Context, s *standin.Store, state string) error {
		return s.SetConfigMode(standin.ConfigMode(state))
	})
	onStore(api.PathRestartStore, func(ctx context.Context, s *standin.Store, _ string) error { return s.Restart(ctx) })
	onStore(api.PathOfflineStore, func(ctx context.Context, s *standin.Store, _ string) error {
		return b.OfflineStore(ctx, s.Place().ID)
	})
	onStore(api.PathRemoveStore, func(ctx context.Context, s *standin.Store, _ string) error {
		return b.RemoveStore(ctx, s.Place().ID)
	})
	mux.Handle("POST "+api.PathAddStore, handle(func(ctx context.Context, _ struct{}) (any, error) {
		return b.AddStore(ctx)
	}))
}

func (b *Bed) routeCluster(lab context.Context, mux *http.ServeMux) {
	mux.Handle("POST "+api.PathLoad, handle(func(_ context.Context, r api.Load) (any, error) {
		return nil, b.cluster.SetLoad(lab, r.Host, r.Points)
	}))
	mux.Handle("POST "+api.PathTarget, handle(func(_ context.Context, r api.Target) (any, error) {
		b.cluster.SetTargetFull(r.Full)
		return nil, nil
	}))
	mux.Handle("POST "+api.PathPD, handle(func(ctx context.Context, r api.Process) (any, error) {
		return nil, b.PD(ctx, r.Action, r.Member)
	}))
	mux.Handle("POST "+api.PathTiDB, handle(func(ctx context.Context, r api.Process) (any, error) {
		return nil, b.TiDB(ctx, r.Action)
	}))
	mux.Handle("POST "+api.PathGCSafePoint, handle(func(ctx context.Context, r api.SafePoint) (any, error) {
		ts, err := b.MoveGCSafePoint(ctx, r.SafePoint)
		return api.SafePoint{SafePoint: ts}, err
	}))
	mux.Handle("POST "+api.PathServiceSafePoint, handle(func(ctx context.Context, r api.SafePoint) (any, error) {
		ts, err := b.SetServiceSafePoint(ctx, r.ServiceID, r.TTL, r.SafePoint)
		return api.SafePoint{SafePoint: ts}, err
	}))
}

// handle decodes a request, runs f and encodes what it returns.
func handle[T any](f func(context.Context, T) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var request T
		if r.Method == http.MethodPost {
			if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
				fail(w, http.StatusBadRequest, fmt.Errorf("parse request: %w", err))
				return
			}
		}
		answer, err := f(r.Context(), request)
		if err != nil {
			fail(w, http.StatusInternalServerError, err)
			return
		}
		if answer == nil {
			answer = struct{}{}
		}
		json.NewEncoder(w).Encode(answer) //nolint:errcheck // the client went away
	})
}

func fail(w http.ResponseWriter, status int, err error) {
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"error": err.Error()}) //nolint:errcheck // the client went away
}
