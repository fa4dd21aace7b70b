package scrape_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/brctl/brctl/internal/scrape"
)

func value(v float64) scrape.Value { return scrape.Value{V: v, Known: true} }

const tikvPage = `# HELP process_cpu_seconds_total Total user and system CPU time spent in seconds.
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 18234
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1764538000
# TYPE tikv_backup_scan_kv_size_bytes counter
tikv_backup_scan_kv_size_bytes{cf="default"} 1048576
tikv_backup_scan_kv_size_bytes{cf="write"} 4096
# TYPE tikv_backup_softlimit gauge
tikv_backup_softlimit 4
tikv_backup_thread_pool_size 8
tikv_server_cpu_cores_quota 15.5
# TYPE tikv_thread_cpu_seconds_total gauge
tikv_thread_cpu_seconds_total{name="bkwkr_v0",tid="101"} 12.5
tikv_thread_cpu_seconds_total{name="backup_worker_v1",tid="102"} 2
tikv_thread_cpu_seconds_total{name="bkwkr",tid="103"} 0.25
tikv_thread_cpu_seconds_total{name="backup_io",tid="104"} 3
tikv_thread_cpu_seconds_total{name="backup_stream_0",tid="105"} 70
tikv_thread_cpu_seconds_total{name="raftstore_1_0",tid="106"} 900.75
`

func TestParseReadsTheFamiliesOfATiKV(t *testing.T) {
	got, err := scrape.Parse(strings.NewReader(tikvPage))
	if err != nil {
		t.Fatal(err)
	}
	want := scrape.Sample{
		StartedAt:    time.Unix(1764538000, 0).UTC(),
		SoftLimit:    value(4),
		PoolSize:     value(8),
		Cores:        value(15.5),
		ProcessCPU:   value(18234),
		ScannedBytes: value(1052672),
		Threads: []scrape.Thread{
			{TID: 101, Role: scrape.RoleWorker, Seconds: 12.5},
			{TID: 102, Role: scrape.RoleWorker, Seconds: 2},
			{TID: 103, Role: scrape.RoleWorker, Seconds: 0.25},
			{TID: 104, Role: scrape.RoleIO, Seconds: 3},
			{TID: 105, Role: scrape.RoleOther, Seconds: 70},
			{TID: 106, Role: scrape.RoleOther, Seconds: 900.75},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := got.WorkerSeconds(); got != value(14.75) {
		t.Errorf("worker seconds %v", got)
	}
}

func TestWhatAPageDoesNotSayIsUnknown(t *testing.T) {
	tests := map[string]string{
		"empty page":            "",
		"other families":        "tikv_backup_softlimits 4\ntikv_backup_softlimi 4\nprocess_cpu_seconds_total_x 1\n",
		"comment":               "# tikv_backup_softlimit 4\n",
		"not a number":          "tikv_backup_softlimit NaN\nprocess_cpu_seconds_total +Inf\n",
		"no value":              "tikv_backup_softlimit\nprocess_cpu_seconds_total \n",
		"text":                  "tikv_backup_softlimit four\nprocess_cpu_seconds_total 0x10\n",
		"broken labels":         "tikv_backup_softlimit{a=\"b 4\nprocess_cpu_seconds_total{a} 4\n",
		"cut in a number":       "tikv_backup_softlimit 4",
		"value in a long line":  "tikv_backup_softlimit{x=\"" + strings.Repeat("x", 1<<17) + "\"} 4\n",
		"inside another's text": "other{x=\"\\ntikv_backup_softlimit 4\"} 1\n",
	}
	for name, page := range tests {
		got, err := scrape.Parse(strings.NewReader(page))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(scrape.Sample{}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got.WorkerSeconds().Known {
			t.Errorf("%s: worker seconds are known", name)
		}
	}
}

func TestParseGoesOnAfterALineThatIsTooLong(t *testing.T) {
	page := "other{x=\"" + strings.Repeat("tikv_backup_softlimit 9 ", 1<<13) + "\"} 1\ntikv_backup_softlimit 4\n"
	got, err := scrape.Parse(strings.NewReader(page))
	if err != nil || got.SoftLimit != value(4) {
		t.Errorf("got %v, %v", got.SoftLimit, err)
	}
}

func TestParseAllowsWhatTheFormatAllows(t *testing.T) {
	for _, line := range []string{
		"tikv_backup_softlimit 4",
		"\t tikv_backup_softlimit\t4",
		"tikv_backup_softlimit 4.0 1764538000000",
		"tikv_backup_softlimit{} 4",
		"tikv_backup_softlimit { } 4",
		`tikv_backup_softlimit{a="}",b="x \" } 9",} 4e0`,
	} {
		got, err := scrape.Parse(strings.NewReader(line + "\n"))
		if err != nil || got.SoftLimit != value(4) {
			t.Errorf("%q: got %v, %v", line, got.SoftLimit, err)
		}
	}
}

func TestPageThatBreaksOffIsAnErrorAndNoSample(t *testing.T) {
	broken := errors.New("connection reset")
	got, err := scrape.Parse(io.MultiReader(strings.NewReader(tikvPage), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || !cmp.Equal(got, scrape.Sample{}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// endless is a page without an end, and without a line's end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("x"), 1<<16)), nil }

func TestPageWithoutAnEndIsAnError(t *testing.T) {
	if _, err := scrape.Parse(endless{}); err == nil || !strings.Contains(err.Error(), "more than 128 MiB") {
		t.Errorf("got %v", err)
	}
}

// The reference is the parser of the Prometheus project, on pages that its own
// writer makes.
func TestParseAgreesWithTheReferenceParser(t *testing.T) {
	for seed := range uint64(50) {
		page := generate(rand.New(rand.NewPCG(seed, 1)), 200)
		got, err := scrape.Parse(bytes.NewReader(page))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(reference(t, page), got); diff != "" {
			t.Fatalf("seed %d (-reference +got):\n%s\n%s", seed, diff, page)
		}
	}
}

// reference builds a sample with expfmt.
func reference(t *testing.T, page []byte) scrape.Sample {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var s scrape.Sample
	one := func(name string) (v scrape.Value) {
		for _, m := range families[name].GetMetric() {
			if f := number(m); !math.IsNaN(f) && !math.IsInf(f, 0) {
				v = value(f)
			}
		}
		return v
	}
	s.SoftLimit = one("tikv_backup_softlimit")
	s.PoolSize = one("tikv_backup_thread_pool_size")
	s.Cores = one("tikv_server_cpu_cores_quota")
	s.ProcessCPU = one("process_cpu_seconds_total")
	if start := one("process_start_time_seconds"); start.Known {
		s.StartedAt = time.UnixMilli(int64(start.V * 1000)).UTC()
	}
	for _, m := range families["tikv_backup_scan_kv_size_bytes"].GetMetric() {
		s.ScannedBytes = value(s.ScannedBytes.V + number(m))
	}
	for _, m := range families["tikv_thread_cpu_seconds_total"].GetMetric() {
		thread := scrape.Thread{Seconds: number(m)}
		for _, l := range m.GetLabel() {
			switch l.GetName() {
			case "name":
				switch n := l.GetValue(); {
				case strings.HasPrefix(n, "bkwkr"), strings.HasPrefix(n, "backup_worker"):
					thread.Role = scrape.RoleWorker
				case n == "backup_io":
					thread.Role = scrape.RoleIO
				}
			case "tid":
				_, _ = fmt.Sscan(l.GetValue(), &thread.TID)
			}
		}
		s.Threads = append(s.Threads, thread)
	}
	return s
}

func number(m *dto.Metric) float64 {
	switch {
	case m.GetCounter() != nil:
		return m.GetCounter().GetValue()
	case m.GetGauge() != nil:
		return m.GetGauge().GetValue()
	}
	return m.GetUntyped().GetValue()
}

// generate makes a page of the wanted families, each present or not, among
// fillers with labels that are hard to read.
func generate(r *rand.Rand, fillers int) []byte {
	var families []*dto.MetricFamily
	add := func(name string, kind dto.MetricType, metrics ...*dto.Metric) {
		families = append(families, &dto.MetricFamily{Name: &name, Type: &kind, Help: new("about\n" + name + " 7"), Metric: metrics})
	}
	for _, name := range []string{"tikv_backup_softlimit", "tikv_backup_thread_pool_size", "tikv_server_cpu_cores_quota"} {
		if r.IntN(4) > 0 {
			add(name, dto.MetricType_GAUGE, gauge(odd(r)))
		}
	}
	if r.IntN(4) > 0 {
		add("process_cpu_seconds_total", dto.MetricType_COUNTER, counter(float64(r.IntN(1e7))))
		add("process_start_time_seconds", dto.MetricType_GAUGE, gauge(float64(1.7e9+r.IntN(1e8))))
		add("tikv_backup_scan_kv_size_bytes", dto.MetricType_COUNTER,
			counter(float64(r.IntN(1<<40)), "cf", "default"), counter(float64(r.IntN(1<<30)), "cf", "write"))
	}
	var threads []*dto.Metric
	for i := range r.IntN(40) {
		names := []string{"bkwkr", "bkwkr_v12", "backup_worker_v0", "backup_io", "backup_io_1", "backup_stream", "grpc_server_0", "store_writer_1"}
		threads = append(threads, gauge(float64(r.IntN(1e6))/100, "name", names[r.IntN(len(names))], "tid", fmt.Sprint(1000+i)))
	}
	if len(threads) > 0 {
		add("tikv_thread_cpu_seconds_total", dto.MetricType_GAUGE, threads...)
	}
	for i := range fillers {
		text := []string{"plain", `quo"te`, `back\slash`, "new\nline tikv_backup_softlimit 9", "br{ace}", "uni\u00e9", `end\`}[r.IntN(7)]
		add(fmt.Sprintf("tikv_filler_%d", i), dto.MetricType_COUNTER, counter(r.Float64(), "type", text, "name", text))
	}
	r.Shuffle(len(families), func(i, j int) { families[i], families[j] = families[j], families[i] })
	var page bytes.Buffer
	for _, f := range families {
		_, _ = expfmt.MetricFamilyToText(&page, f)
	}
	return page.Bytes()
}

func odd(r *rand.Rand) float64 {
	return []float64{0, 1, 7.5, math.NaN(), math.Inf(1), 1e-9, 123456789}[r.IntN(7)]
}

func counter(v float64, labels ...string) *dto.Metric {
	return &dto.Metric{Counter: &dto.Counter{Value: &v}, Label: pairs(labels)}
}

func gauge(v float64, labels ...string) *dto.Metric {
	return &dto.Metric{Gauge: &dto.Gauge{Value: &v}, Label: pairs(labels)}
}

func pairs(labels []string) (out []*dto.LabelPair) {
	for i := 0; i < len(labels); i += 2 {
		out = append(out, &dto.LabelPair{Name: new(labels[i]), Value: new(labels[i+1])})
	}
	return out
}

func FuzzParseAgreesWithTheReferenceWhereItAccepts(f *testing.F) {
	f.Add([]byte(tikvPage))
	f.Add([]byte("tikv_backup_softlimit{a=\"\\\\\"} 4 17\n"))
	f.Add([]byte("tikv_backup_softlimit 4\n# TYPE x counter\n"))
	f.Add(generate(rand.New(rand.NewPCG(1, 2)), 5))
	f.Fuzz(func(t *testing.T, page []byte) {
		got, err := scrape.Parse(bytes.NewReader(page))
		if err != nil {
			t.Fatalf("a page in memory cannot break off: %v", err)
		}
		for _, v := range []scrape.Value{got.SoftLimit, got.PoolSize, got.Cores, got.ProcessCPU, got.ScannedBytes, got.WorkerSeconds()} {
			if math.IsNaN(v.V) || math.IsInf(v.V, 0) || !v.Known && v.V != 0 {
				t.Errorf("not a number, or a number that is not known: %+v", v)
			}
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
		if err != nil || bytes.Contains(page, []byte(`{"`)) {
			return // the reference refuses it, or it uses quoted metric names, which TiKV does not
		}
		for name, v := range map[string]scrape.Value{
			"tikv_backup_softlimit":     got.SoftLimit,
			"process_cpu_seconds_total": got.ProcessCPU,
		} {
			metrics := families[name].GetMetric()
			if len(metrics) != 1 || metrics[0].GetHistogram() != nil || metrics[0].GetSummary() != nil {
				continue
			}
			want := number(metrics[0])
			if finite := !math.IsNaN(want) && !math.IsInf(want, 0); v.Known != finite || finite && v.V != want {
				t.Errorf("%s is %+v, the reference says %v", name, v, want)
			}
		}
	})
}

// BenchmarkParse reads a page of 8 MB, as a store with many regions and
// coprocessor histograms has.
func BenchmarkParse(b *testing.B) {
	var page bytes.Buffer
	page.WriteString(tikvPage)
	for i := range 300 {
		fmt.Fprintf(&page, "tikv_thread_cpu_seconds_total{name=\"grpc_server_%d\",tid=\"%d\"} %d.25\n", i%8, 2000+i, i)
	}
	for i := 0; page.Len() < 8<<20; i++ {
		fmt.Fprintf(&page, "tikv_grpc_msg_duration_seconds_bucket{type=\"kv_get_%d\",priority=\"normal\",le=\"0.0%d\"} %d\n", i%400, i%20, i)
	}
	b.SetBytes(int64(page.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if s, err := scrape.Parse(bytes.NewReader(page.Bytes())); err != nil || len(s.Threads) != 306 {
			b.Fatal(len(s.Threads), err)
		}
	}
}
