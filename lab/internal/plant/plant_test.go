package plant_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/brctl/brctl/lab/internal/plant"
)

const second = time.Second

// config is a store on which a region of n bytes takes n nanoseconds.
func config(threads, batch int, refresh time.Duration) plant.StoreConfig {
	return plant.StoreConfig{
		Version:                 "8.5.0",
		Settings:                plant.Settings{NumThreads: threads, BatchSize: batch, Refresh: refresh},
		BytesPerThreadPerSecond: vectorRate,
	}
}

// regions is n regions that take d each on one thread at full speed.
func regions(n int, d time.Duration) []int64 {
	sizes := make([]int64, n)
	for i := range sizes {
		sizes[i] = int64(d)
	}
	return sizes
}

func TestEffectiveSettingsReplaceWhatIsOutOfRange(t *testing.T) {
	for _, tt := range []struct {
		cores     float64
		asked     int
		effective int
	}{
		{8, 4, 4}, {8, 8, 8}, {8, 9, 4}, {8, 0, 4}, {8, -1, 4}, {48, 999, 8},
		{2.9, 2, 2}, {2.9, 3, 1}, {1, 0, 1},
	} {
		got := plant.Settings{NumThreads: tt.asked}.Effective(tt.cores)
		if got.NumThreads != tt.effective || got.BatchSize != 8 {
			t.Errorf("%d threads, batch 0 on %g cores became %+v, want %d threads, batch 8",
				tt.asked, tt.cores, got, tt.effective)
		}
	}
	if got := plant.DefaultSettings(48); got.NumThreads != 8 || got.RemainThreads != 10 || !got.AutoTune {
		t.Errorf("defaults for 48 cores = %+v", got)
	}
}

func TestPoolRuleByVersion(t *testing.T) {
	for version, keeps := range map[string]bool{
		"6.5.3": true, "v8.5.0": true, "8.5.1-nightly": true, "8.1.9": true,
		"8.5.2": false, "v9.0.0-beta.1": false, "nightly": false,
	} {
		h := plant.NewHost(16, 0)
		cfg := config(8, 1, second)
		cfg.Version = version
		s := h.AddStore(0, cfg)
		s.Request(0, nil)
		s.Apply(0, plant.Settings{NumThreads: 2, Refresh: second})
		s.Request(0, nil)
		want, name := 2, "bkwkr-v1"
		if keeps {
			want, name = 8, "bkwkr"
		}
		if s.PoolSize() != want || s.Threads()[0].Name != name {
			t.Errorf("%s: pool of %d %s, want %d %s", version, s.PoolSize(), s.Threads()[0].Name, want, name)
		}
	}
}

func TestAnEmptyRequestEndsAtOnce(t *testing.T) {
	h := plant.NewHost(16, 0)
	s := h.AddStore(0, config(4, 8, second))
	r := s.Request(3*second, nil)
	events := h.Advance(3 * second)
	if !r.Ended() || len(events) != 1 || events[0].Kind != plant.RequestEnded || events[0].At != 3*second {
		t.Errorf("ended %t, events %+v", r.Ended(), events)
	}
}

func TestThreadsAccountForAllCPU(t *testing.T) {
	h := plant.NewHost(4, 0.5) // 2 + 4 threads on 4 cores: speed 2/3
	s := h.AddStore(0, config(4, 1, 60*second))
	s.Request(0, regions(100, 10*second))
	h.Advance(47 * second)
	var sum time.Duration
	for _, th := range s.Threads() {
		sum += th.CPU
		if !th.Busy || th.CPU == 0 {
			t.Errorf("idle thread %+v", th)
		}
	}
	want := 4 * 47 * second * 2 / 3
	for name, got := range map[string]time.Duration{"threads": sum, "store": s.BackupCPU()} {
		if (got - want).Abs() > time.Microsecond {
			t.Errorf("CPU by %s = %v, want %v", name, got, want)
		}
	}
	if got, want := s.BusinessCPU(), 2*47*second*2/3; (got - want).Abs() > time.Microsecond {
		t.Errorf("business CPU = %v, want %v", got, want)
	}
}

func TestIOThreadsAddToDemand(t *testing.T) {
	h := plant.NewHost(16, 0.25)
	cfg := config(4, 1, 60*second)
	cfg.IOCoresPerThread = 0.25
	s := h.AddStore(0, cfg)
	s.Request(0, regions(100, 10*second))
	if got := h.Utilization(); got != 9.0/16 {
		t.Errorf("utilization = %g, want 4 + 4 + 1 of 16", got)
	}
	h.Advance(8 * second)
	if got := s.IOCPU(); got != 8*second {
		t.Errorf("io CPU = %v, want 8s", got)
	}
}

func TestPaceSlowsAndHangsOneStore(t *testing.T) {
	h := plant.NewHost(16, 0)
	slow, other := h.AddStore(0, config(1, 1, 60*second)), h.AddStore(0, config(1, 1, 60*second))
	rs, ro := slow.Request(0, regions(2, 10*second)), other.Request(0, regions(2, 10*second))
	slow.SetPace(5*second, 0)
	h.Advance(25 * second)
	if rs.Done() != 0 || slow.Running() != 1 || ro.Done() != 2 {
		t.Fatalf("hung store did %d, runs %d; the other did %d", rs.Done(), slow.Running(), ro.Done())
	}
	slow.SetPace(100*second, 0.5)
	h.Advance(110 * second) // the other 5 s of work take 10
	if rs.Done() != 1 {
		t.Errorf("slow store did %d, want 1", rs.Done())
	}
}

func TestStopEndsRequestsAndStartForgetsCounters(t *testing.T) {
	h := plant.NewHost(16, 0.25)
	s := h.AddStore(0, config(4, 1, 60*second))
	r := s.Request(0, regions(100, 10*second))
	s.Apply(2*second, plant.Settings{NumThreads: 3, BatchSize: 1, Refresh: 60 * second})
	s.Stop(5 * second)
	events := h.Advance(6 * second)
	if len(events) != 1 || events[0].Kind != plant.RequestEnded || events[0].At != 5*second || !r.Ended() {
		t.Fatalf("events at stop = %+v", events)
	}
	if s.Up() || s.Request(6*second, regions(1, second)) != nil || len(s.Threads()) != 0 {
		t.Error("a stopped store still takes requests or has threads")
	}
	if at, ok := h.NextEvent(); ok {
		t.Errorf("a stopped store has an event at %v", at)
	}
	s.Start(10 * second)
	if s.SoftLimit() != 3 || s.BackupCPU() != 0 || s.PoolGauge() != 0 {
		t.Errorf("after start: softlimit %d, CPU %v, gauge %d", s.SoftLimit(), s.BackupCPU(), s.PoolGauge())
	}
	s.Request(11*second, regions(9, second))
	if s.Running() != 3 {
		t.Errorf("running %d after start, want 3", s.Running())
	}
}

func TestTimeDoesNotRunBackwards(t *testing.T) {
	h := plant.NewHost(16, 0)
	s := h.AddStore(0, config(1, 1, 60*second))
	h.Advance(10 * second)
	r := s.Request(3*second, regions(1, second))
	if r.Arrived() != 10*second || h.Now() != 10*second {
		t.Errorf("request in the past arrived at %v, host at %v", r.Arrived(), h.Now())
	}
}

// The size of the steps in which time passes must not matter.
func TestStepSizeDoesNotMatter(t *testing.T) {
	play := func(step time.Duration) string {
		h := plant.NewHost(8, 0.6)
		a, b := h.AddStore(0, config(4, 2, 7*second)), h.AddStore(second, config(3, 1, 5*second))
		a.Request(2*second, regions(40, 11*second))
		b.Request(3*second, regions(40, 13*second))
		log := ""
		for now := step; now <= 600*second; now += step {
			for _, e := range h.Advance(now) {
				log += fmt.Sprint(e.At.Round(time.Microsecond), e.Kind, e.Region, " ")
			}
		}
		return log
	}
	if coarse, fine := play(600*second), play(100*time.Millisecond); coarse != fine {
		t.Errorf("in one step:\n%s\nin many:\n%s", coarse, fine)
	}
}
