package standin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/brctl/brctl/lab/internal/events"
	"github.com/brctl/brctl/lab/internal/settings"
)

// statusHandler is TiKV's status port: the parts that TiDB, br and the product use.
func (s *Store) statusHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /config", s.getConfig)
	mux.HandleFunc("POST /config", s.postConfig)
	mux.HandleFunc("GET /metrics", s.getMetrics)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.hangs(r) {
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// hangs blocks while the store is hung; it reports true when the caller gave up.
func (s *Store) hangs(r *http.Request) bool {
	for {
		condition, mode, changed := s.wait()
		writes := r.Method == http.MethodPost && mode == ConfigHang
		if condition != Hung && !writes {
			return false
		}
		select {
		case <-r.Context().Done():
			return true
		case <-changed:
		}
	}
}

func (s *Store) getConfig(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(s.settings.Tree()) //nolint:errcheck // the client went away
}

// postConfig answers in TiKV's words, which TiDB passes on as warnings.
func (s *Store) postConfig(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return
	}
	request := map[string]any{}
	if err := json.Unmarshal(body, &request); err != nil {
		refuse(w, fmt.Errorf("failed to decode, error: %q", err.Error()))
		return
	}
	if err := s.configure(request, r.URL.Query().Get("persist") != "false"); err != nil {
		refuse(w, err)
	}
}

// refuse answers with the bare text; http.Error would end it with a line break, which TiKV's answers do not have.
func refuse(w http.ResponseWriter, err error) {
	w.WriteHeader(http.StatusInternalServerError)
	io.WriteString(w, err.Error()) //nolint:errcheck // the client went away
}

func (s *Store) configure(request map[string]any, persist bool) error {
	_, mode, _ := s.wait()
	if mode == ConfigRefuse {
		err := fmt.Errorf("failed to update, error: %q", "the lab was told to refuse")
		s.recordRefusal(request, err)
		return err
	}
	changes, err := s.settings.Set(request, persist && mode == ConfigOK)
	if err != nil && !errors.Is(err, settings.ErrNotPersisted) {
		err = fmt.Errorf("failed to update, error: %q", err.Error())
		s.recordRefusal(request, err)
		return err
	}
	s.machine.do(func(now time.Duration) { s.plant.Apply(now, plantSettings(s.settings.Backup())) })
	persisted := persist && mode == ConfigOK && err == nil
	for _, c := range changes {
		e := s.event(events.ConfigChange)
		e.Config = &events.Config{Item: c.Item, Value: c.Asked, Effective: c.Effective, Persisted: persisted}
		s.record(e)
	}
	if persist && !persisted {
		return errors.New(`config changed, but failed to persist change due to err: ` +
			`Os { code: 28, kind: StorageFull, message: "No space left on device" }`)
	}
	return nil
}

func (s *Store) recordRefusal(request map[string]any, err error) {
	for item, v := range request {
		e := s.event(events.ConfigRefused)
		e.Config = &events.Config{Item: item, Value: v, Refusal: err.Error()}
		s.record(e)
	}
}
