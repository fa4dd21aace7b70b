package scrape_test

import (
	"math"
	"testing"
	"time"

	"github.com/brctl/brctl/internal/scrape"
)

var start = time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

func cpu(seconds, process float64) scrape.Sample {
	return scrape.Sample{At: at(seconds), StartedAt: start, ProcessCPU: value(process)}
}

func TestProcessRateIsTakenOverAtLeastFifteenSeconds(t *testing.T) {
	// 2.5 cores, counted in whole seconds: single steps read 2 and 3.
	w := scrape.NewWindow(time.Second)
	for i := range 40 {
		if got := w.Add(cpu(float64(i), math.Floor(1000+2.5*float64(i)))); got != scrape.AddedKept {
			t.Fatalf("sample %d: %v", i, got)
		}
		rates, ok := w.Rates()
		if ok != (i >= 15) {
			t.Fatalf("after %d s: ok = %v", i, ok)
		}
		if !ok {
			continue
		}
		if span := rates.To.Sub(rates.From); span != scrape.MinSpan {
			t.Errorf("after %d s: span %v", i, span)
		}
		if !rates.Process.Known || math.Abs(rates.Process.V-2.5) > 1.0/15 {
			t.Errorf("after %d s: %+v cores, want 2.5 ± 1/15", i, rates.Process)
		}
	}
}

func TestRestartDropsTheWindow(t *testing.T) {
	later := start.Add(time.Hour)
	tests := map[string]scrape.Sample{
		"new start time, value fell":        {At: at(30), StartedAt: later, ProcessCPU: value(3)},
		"new start time, value rose":        {At: at(30), StartedAt: later, ProcessCPU: value(9000)},
		"value fell, start time unknown":    {At: at(30), ProcessCPU: value(3)},
		"value fell, start time as before":  {At: at(30), StartedAt: start, ProcessCPU: value(3)},
		"new start time, CPU is not listed": {At: at(30), StartedAt: later},
	}
	for name, s := range tests {
		w := scrape.NewWindow(0)
		w.Add(cpu(0, 5000))
		w.Add(cpu(20, 5040))
		if _, ok := w.Rates(); !ok {
			t.Fatal("no rate before the restart")
		}
		if got := w.Add(s); got != scrape.AddedRestarted {
			t.Errorf("%s: %v", name, got)
		}
		if r, ok := w.Rates(); ok {
			t.Errorf("%s: rates over the restart: %+v", name, r)
		}
		next := s
		next.At = at(50)
		next.ProcessCPU = value(s.ProcessCPU.V + 40)
		w.Add(next)
		if r, ok := w.Rates(); !ok || r.From != s.At || s.ProcessCPU.Known && r.Process != value(2) {
			t.Errorf("%s: after it %+v, %v", name, r, ok)
		}
	}
}

func TestPageThatIsNotNewerIsIgnored(t *testing.T) {
	w := scrape.NewWindow(0)
	w.Add(cpu(0, 1000))
	w.Add(cpu(20, 1050))
	for _, s := range []scrape.Sample{cpu(20, 1050), cpu(20, 9999), cpu(10, 0)} {
		if got := w.Add(s); got != scrape.AddedIgnored {
			t.Errorf("%+v: %v", s, got)
		}
	}
	if r, ok := w.Rates(); !ok || r.Process != value(2.5) {
		t.Errorf("got %+v, %v", r, ok)
	}
}

func TestLongGapStartsAnew(t *testing.T) {
	w := scrape.NewWindow(0)
	w.Add(cpu(0, 1000))
	if got := w.Add(cpu(60, 1060)); got != scrape.AddedKept {
		t.Errorf("60 s: %v", got)
	}
	if got := w.Add(cpu(121, 1200)); got != scrape.AddedAfterGap {
		t.Errorf("61 s: %v", got)
	}
	if r, ok := w.Rates(); ok {
		t.Errorf("rates over the gap: %+v", r)
	}
}

func threads(seconds float64, list ...scrape.Thread) scrape.Sample {
	return scrape.Sample{At: at(seconds), StartedAt: start, Threads: list}
}

func worker(tid int64, s float64) scrape.Thread {
	return scrape.Thread{TID: tid, Role: scrape.RoleWorker, Seconds: s}
}

func TestThreadRatesAreTakenPerThread(t *testing.T) {
	other := func(tid int64, s float64) scrape.Thread { return scrape.Thread{TID: tid, Seconds: s} }
	io := func(tid int64, s float64) scrape.Thread {
		return scrape.Thread{TID: tid, Role: scrape.RoleIO, Seconds: s}
	}
	tests := []struct {
		name                 string
		samples              []scrape.Sample
		workers, io, threads float64
	}{
		{"steady", []scrape.Sample{
			threads(0, worker(1, 100), io(2, 10), other(3, 1000)),
			threads(20, worker(1, 120), io(2, 15), other(3, 1040)),
		}, 1, 0.25, 3.25},
		{"a worker ends: what it had is not taken back", []scrape.Sample{
			threads(0, worker(1, 100), worker(2, 500)),
			threads(10, worker(1, 110), worker(2, 510)),
			threads(20, worker(1, 120)),
		}, 1.5, 0, 1.5},
		{"a worker appears with its whole life: that does not count", []scrape.Sample{
			threads(0, worker(1, 100)),
			threads(10, worker(1, 110), worker(2, 700)),
			threads(20, worker(1, 120), worker(2, 710)),
		}, 1.5, 0, 1.5},
		{"an id is given again to another kind of thread", []scrape.Sample{
			threads(0, worker(1, 100), other(2, 5)),
			threads(20, worker(1, 120), worker(2, 900)),
		}, 1, 0, 1},
		{"an id is given again to a new worker", []scrape.Sample{
			threads(0, worker(1, 100), worker(2, 50)),
			threads(20, worker(1, 120), worker(2, 3)),
		}, 1, 0, 1},
		{"no backup runs", []scrape.Sample{
			threads(0, other(3, 10)),
			threads(20, other(3, 30)),
		}, 0, 0, 1},
	}
	for _, tt := range tests {
		w := scrape.NewWindow(0)
		for _, s := range tt.samples {
			w.Add(s)
		}
		r, ok := w.Rates()
		if !ok || r.Workers != value(tt.workers) || r.IO != value(tt.io) || r.Threads != value(tt.threads) {
			t.Errorf("%s: workers %v, io %v, threads %v, ok %v", tt.name, r.Workers, r.IO, r.Threads, ok)
		}
		if r.Process.Known || r.ScannedBytesPerS.Known {
			t.Errorf("%s: process %v and scanned %v are not on the page", tt.name, r.Process, r.ScannedBytesPerS)
		}
	}
}

func TestRateIsUnknownWhileOneOfItsSamplesIs(t *testing.T) {
	scanned := func(seconds float64, v scrape.Value) scrape.Sample {
		s := cpu(seconds, 1000+seconds)
		s.ScannedBytes = v
		return s
	}
	w := scrape.NewWindow(0)
	w.Add(scanned(0, value(0)))
	w.Add(scanned(10, scrape.Value{}))
	w.Add(scanned(20, value(2000)))
	if r, ok := w.Rates(); !ok || r.ScannedBytesPerS.Known || r.Process != value(1) {
		t.Errorf("with a hole: %+v, %v", r, ok)
	}
	w.Add(scanned(30, value(3000)))
	w.Add(scanned(40, value(4000)))
	if r, ok := w.Rates(); !ok || r.ScannedBytesPerS != value(100) {
		t.Errorf("after it: %+v, %v", r, ok)
	}
}

func TestCoresUsedAreThoseOfThreadsSeenTwiceOverTheTimeBetweenTheSamples(t *testing.T) {
	thread := func(tid int64, seconds float64) scrape.Thread { return scrape.Thread{TID: tid, Seconds: seconds} }
	page := func(seconds float64, threads ...scrape.Thread) scrape.Sample {
		return scrape.Sample{At: at(seconds), StartedAt: start, Threads: threads}
	}
	restarted := page(5, thread(1, 120))
	restarted.StartedAt = start.Add(time.Minute)
	tests := map[string]struct {
		a, b scrape.Sample
		want scrape.Value
	}{
		"two threads, and a slow answer":     {page(0, thread(1, 100), thread(2, 7)), page(8, thread(1, 112), thread(2, 11)), value(2)},
		"idle":                               {page(0, thread(1, 100)), page(5, thread(1, 100)), value(0)},
		"one ended, as its sum would fall":   {page(0, thread(1, 100), thread(2, 9000)), page(5, thread(1, 110)), value(2)},
		"one started, as its sum would rise": {page(0, thread(1, 100)), page(5, thread(1, 110), thread(3, 4)), value(2)},
		"an id that was given again":         {page(0, thread(1, 100), thread(2, 9000)), page(5, thread(1, 110), thread(2, 1)), value(2)},
		"no thread on the first page":        {page(0), page(5, thread(1, 100)), scrape.Value{}},
		"no thread on the second page":       {page(0, thread(1, 100)), page(5), scrape.Value{}},
		"no thread at all":                   {page(0), page(5), scrape.Value{}},
		"a restart":                          {page(0, thread(1, 100)), restarted, scrape.Value{}},
		"two samples of one moment":          {page(5, thread(1, 100)), page(5, thread(1, 110)), scrape.Value{}},
		"samples in the wrong order":         {page(5, thread(1, 100)), page(0, thread(1, 110)), scrape.Value{}},
	}
	for name, tt := range tests {
		if got := scrape.CoresUsed(tt.a, tt.b); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tt.want)
		}
	}
}
