package metricspage

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

type metricType string

const (
	counter   metricType = "counter"
	gauge     metricType = "gauge"
	histogram metricType = "histogram"
)

// family is one metric family and how to write its samples. A family without a
// name is left out.
type family struct {
	name    string
	typ     metricType
	help    string
	samples func(*page)
}

func byName(a, b family) int { return strings.Compare(a.name, b.name) }

// page writes the Prometheus text format. Errors stick in the buffered writer
// and come out in flush.
type page struct {
	w   *bufio.Writer
	n   int64
	buf []byte // scratch for numbers
}

func newPage(w io.Writer) *page { return &page{w: bufio.NewWriterSize(w, 32<<10)} }

func (p *page) flush() (int64, error) { return p.n, p.w.Flush() }

func (p *page) write(parts ...string) {
	for _, s := range parts {
		n, _ := p.w.WriteString(s)
		p.n += int64(n)
	}
}

func (p *page) family(f family) {
	if f.name == "" {
		return
	}
	p.write("# HELP ", f.name, " ", f.help, "\n# TYPE ", f.name, " ", string(f.typ), "\n")
	f.samples(p)
}

// sample writes one line; labels is a rendered list or empty.
func (p *page) sample(name, suffix, labels string, value float64) {
	p.write(name, suffix)
	if labels != "" {
		p.write("{", labels, "}")
	}
	p.write(" ")
	p.number(value)
	p.write("\n")
}

func (p *page) histogram(name, labels string, h *Histogram) {
	cumulative := uint64(0)
	for i, n := range h.counts {
		cumulative += n
		le := "+Inf"
		if i < len(h.bounds) {
			le = strconv.FormatFloat(h.bounds[i], 'f', -1, 64)
		}
		p.sample(name, "_bucket", labels+`,le="`+le+`"`, float64(cumulative))
	}
	p.sample(name, "_sum", labels, h.sum)
	p.sample(name, "_count", labels, float64(h.total))
}

// number writes a value as Rust's formatter does: shortest, never an exponent.
func (p *page) number(v float64) {
	p.buf = strconv.AppendFloat(p.buf[:0], v, 'f', -1, 64)
	n, _ := p.w.Write(p.buf)
	p.n += int64(n)
}

var labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// label renders one label pair.
func label(key, value string) string {
	return key + `="` + labelEscaper.Replace(value) + `"`
}
