package scrape_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/brctl/brctl/internal/scrape"
)

// statusPort is a stub of a TiKV's status port.
func statusPort(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func scraper(t *testing.T, timeout time.Duration) *scrape.Scraper {
	t.Helper()
	s := scrape.New(scrape.Options{Timeout: timeout})
	t.Cleanup(s.Close)
	return s
}

func TestStoreReadsThePageOfOneStore(t *testing.T) {
	address := statusPort(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" || r.Header.Get("Accept-Encoding") != "" {
			http.Error(w, "unexpected request", http.StatusBadRequest)
			return
		}
		_, _ = w.Write([]byte(tikvPage))
	})
	before := time.Now()
	got, err := scraper(t, 0).Store(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	if got.SoftLimit != value(4) || len(got.Threads) != 6 {
		t.Errorf("got %+v", got)
	}
	if got.At.Before(before) || got.At.After(time.Now()) {
		t.Errorf("time of the sample: %v", got.At)
	}
}

func TestStoreThatIsNotAbleToAnswerIsAnError(t *testing.T) {
	released := make(chan struct{})
	defer close(released)
	silent := func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-released:
		}
	}
	tests := []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"hangs", silent, "no page within 300ms"},
		{"stops in the middle", func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(tikvPage))
			_ = http.NewResponseController(w).Flush()
			silent(w, r)
		}, "no page within 300ms"},
		{"breaks off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			_, _ = w.Write([]byte(tikvPage))
		}, "unexpected EOF"},
		{"redirects", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/login", http.StatusFound)
		}, "status 302 Found"},
		{"fails", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no", http.StatusInternalServerError)
		}, "status 500"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			address := statusPort(t, tt.handler)
			got, err := scraper(t, 300*time.Millisecond).Store(t.Context(), address)
			if err == nil || !strings.HasPrefix(err.Error(), "scrape "+address+": ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v, want %q", err, tt.want)
			}
			if got.SoftLimit.Known || len(got.Threads) != 0 {
				t.Errorf("a broken page made a sample: %+v", got)
			}
		})
	}
}

func TestStoreEndsWithItsContext(t *testing.T) {
	address := statusPort(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := scraper(t, time.Minute).Store(ctx, address); !errors.Is(err, context.DeadlineExceeded) ||
		strings.Contains(err.Error(), "1m0s") {
		t.Errorf("got %v", err)
	}
}

func TestUnreachableStoreIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	if _, err := scraper(t, 0).Store(t.Context(), address); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v", err)
	}
}

func TestAddressWithoutAHostIsNeverDialled(t *testing.T) {
	for _, address := range []string{"0.0.0.0:20180", "[::]:20180", ":20180", "192.0.2.1"} {
		if _, err := scraper(t, 0).Store(t.Context(), address); err == nil {
			t.Errorf("%s: no error", address)
		}
	}
	if _, err := scraper(t, 0).Store(t.Context(), ""); !errors.Is(err, scrape.ErrNoStatusAddress) {
		t.Errorf("no address: %v", err)
	}
}

// The lab's stand-ins shape their pages as TiKV does.
func TestLabStoreIsReadWhole(t *testing.T) {
	address := os.Getenv("BRCTL_LAB_STATUS")
	if address == "" {
		t.Skip("skip: no lab (set BRCTL_LAB_STATUS=host:port of a stand-in's status port)")
	}
	got, err := scraper(t, 0).Store(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Cores.Known || !got.ProcessCPU.Known || got.StartedAt.IsZero() || len(got.Threads) == 0 {
		t.Errorf("got %+v", got)
	}
}
