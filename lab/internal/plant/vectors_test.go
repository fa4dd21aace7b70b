package plant_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/brctl/brctl/lab/internal/plant"
)

// vectorFile is testdata/plant-vectors.json; its format is described there.
type vectorFile struct {
	Description []string `json:"description"`
	Format      int      `json:"format"`
	Tolerance   float64  `json:"tolerance_seconds"`
	Vectors     []vector `json:"vectors"`
}

type vector struct {
	Name string   `json:"name"`
	Why  []string `json:"why"`
	Host struct {
		Cores float64 `json:"cores"`
		Base  float64 `json:"base"`
	} `json:"host"`
	Stores []struct {
		Version  string         `json:"version"`
		Settings vectorSettings `json:"settings"`
	} `json:"stores"`
	Steps  []vectorStep `json:"steps"`
	Expect struct {
		CutLag *struct {
			From      float64 `json:"from"`
			SoftLimit int     `json:"softlimit"`
			Seconds   float64 `json:"seconds"`
		} `json:"cut_lag_seconds"`
		EndedAt map[string]float64 `json:"ended_at"`
	} `json:"expect"`
}

type vectorSettings struct {
	NumThreads     *int     `json:"num_threads"`
	BatchSize      *int     `json:"batch_size"`
	RefreshSeconds *float64 `json:"refresh_seconds"`
	AutoTune       *bool    `json:"auto_tune"`
	Remain         *int     `json:"remain"`
}

type vectorStep struct {
	At      float64         `json:"at"`
	Store   int             `json:"store"`
	Set     *vectorSettings `json:"set"`
	Base    *float64        `json:"base"`
	Request *struct {
		IDs           []string `json:"ids"`
		Regions       int      `json:"regions"`
		RegionSeconds float64  `json:"region_seconds"`
	} `json:"request"`
	Cancel []string `json:"cancel"`
	Expect *struct {
		Running   *int            `json:"running"`
		SoftLimit *int            `json:"softlimit"`
		Pool      *int            `json:"pool"`
		PoolGauge *int            `json:"pool_gauge"`
		Completed map[string]int  `json:"completed"`
		Ended     map[string]bool `json:"ended"`
	} `json:"expect"`
}

func (v vectorSettings) onto(s plant.Settings) plant.Settings {
	set(&s.NumThreads, v.NumThreads)
	set(&s.BatchSize, v.BatchSize)
	set(&s.AutoTune, v.AutoTune)
	set(&s.RemainThreads, v.Remain)
	if v.RefreshSeconds != nil {
		s.Refresh = seconds(*v.RefreshSeconds)
	}
	return s
}

func set[T any](dst, src *T) {
	if src != nil {
		*dst = *src
	}
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

func readVectors(t *testing.T) vectorFile {
	t.Helper()
	data, err := os.ReadFile("../../testdata/plant-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var f vectorFile
	if err := dec.Decode(&f); err != nil {
		t.Fatal(err)
	}
	if f.Format != 1 || len(f.Description) == 0 {
		t.Fatalf("format %d with %d lines of description, want 1 and some", f.Format, len(f.Description))
	}
	return f
}

func TestGoldenVectors(t *testing.T) {
	f := readVectors(t)
	if len(f.Vectors) < 12 {
		t.Fatalf("%d vectors, want 12 at least", len(f.Vectors))
	}
	for _, v := range f.Vectors {
		t.Run(strings.ReplaceAll(v.Name, " ", "_"), func(t *testing.T) {
			if len(v.Why) == 0 {
				t.Error("vector does not say why")
			}
			newPlayer(t, v).play(seconds(f.Tolerance))
		})
	}
}

// vectorRate makes a region of n bytes take n nanoseconds.
const vectorRate = 1e9

// player runs one vector and remembers what its final expectations need.
type player struct {
	t        *testing.T
	vector   vector
	host     *plant.Host
	stores   []*plant.Store
	requests map[string]*plant.Request
	ended    map[*plant.Request]time.Duration
	cutAt    time.Duration // -1: not seen
}

func newPlayer(t *testing.T, v vector) *player {
	p := &player{
		t:        t,
		vector:   v,
		host:     plant.NewHost(v.Host.Cores, v.Host.Base),
		requests: map[string]*plant.Request{},
		ended:    map[*plant.Request]time.Duration{},
		cutAt:    -1,
	}
	for _, s := range v.Stores {
		p.stores = append(p.stores, p.host.AddStore(0, plant.StoreConfig{
			Version:                 s.Version,
			Settings:                s.Settings.onto(plant.Settings{}),
			BytesPerThreadPerSecond: vectorRate,
		}))
	}
	return p
}

func (p *player) play(tolerance time.Duration) {
	for _, step := range p.vector.Steps {
		p.advance(seconds(step.At))
		p.do(step)
	}
	p.advance(p.horizon())
	p.final(tolerance)
}

// horizon is late enough for all that a vector expects at its end.
func (p *player) horizon() time.Duration {
	last := p.vector.Steps[len(p.vector.Steps)-1].At
	for _, at := range p.vector.Expect.EndedAt {
		last = max(last, at)
	}
	if c := p.vector.Expect.CutLag; c != nil {
		last = max(last, c.From+c.Seconds)
	}
	return seconds(last + 1)
}

// advance goes from event to event, to see when the gauge changes.
func (p *player) advance(to time.Duration) {
	for {
		at, ok := p.host.NextEvent()
		if !ok || at > to {
			break
		}
		p.observe(at)
	}
	p.observe(to)
}

func (p *player) observe(now time.Duration) {
	for _, e := range p.host.Advance(now) {
		if e.Kind == plant.RequestEnded {
			p.ended[e.Request] = e.At
		}
	}
	c := p.vector.Expect.CutLag
	if c != nil && p.cutAt < 0 && now >= seconds(c.From) && p.stores[0].SoftLimit() == c.SoftLimit {
		p.cutAt = now
	}
}

func (p *player) do(step vectorStep) {
	now, store := seconds(step.At), p.stores[step.Store]
	switch {
	case step.Set != nil:
		want := step.Set.onto(store.Settings())
		if got := store.Apply(now, want); got != want {
			p.t.Fatalf("%gs: settings %+v became %+v", step.At, want, got)
		}
	case step.Base != nil:
		p.host.SetBase(now, *step.Base)
	case step.Request != nil:
		for _, id := range step.Request.IDs {
			sizes := make([]int64, step.Request.Regions)
			for i := range sizes {
				sizes[i] = int64(seconds(step.Request.RegionSeconds))
			}
			p.requests[id] = store.Request(now, sizes)
		}
	case step.Cancel != nil:
		for _, id := range step.Cancel {
			p.requests[id].Cancel(now)
		}
	case step.Expect != nil:
		p.check(step, store)
	default:
		p.t.Fatalf("%gs: empty step", step.At)
	}
}

func (p *player) check(step vectorStep, store *plant.Store) {
	e := step.Expect
	for _, c := range []struct {
		name string
		want *int
		got  int
	}{
		{"running", e.Running, store.Running()},
		{"softlimit", e.SoftLimit, store.SoftLimit()},
		{"pool", e.Pool, store.PoolSize()},
		{"pool_gauge", e.PoolGauge, store.PoolGauge()},
	} {
		if c.want != nil && *c.want != c.got {
			p.t.Errorf("%gs: %s = %d, want %d", step.At, c.name, c.got, *c.want)
		}
	}
	for id, want := range e.Completed {
		if got := p.requests[id].Done(); got != want {
			p.t.Errorf("%gs: completed[%s] = %d, want %d", step.At, id, got, want)
		}
	}
	for id, want := range e.Ended {
		if got := p.requests[id].Ended(); got != want {
			p.t.Errorf("%gs: ended[%s] = %t, want %t", step.At, id, got, want)
		}
	}
}

func (p *player) final(tolerance time.Duration) {
	if c := p.vector.Expect.CutLag; c != nil {
		lag := p.cutAt - seconds(c.From)
		if p.cutAt < 0 || (lag-seconds(c.Seconds)).Abs() > tolerance {
			p.t.Errorf("cut lag = %v, want %gs", lag, c.Seconds)
		}
	}
	for id, want := range p.vector.Expect.EndedAt {
		got, ok := p.ended[p.requests[id]]
		if !ok || (got-seconds(want)).Abs() > tolerance {
			p.t.Errorf("%s ended at %v (%t), want %gs", id, got, ok, want)
		}
	}
}
