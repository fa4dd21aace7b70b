package metricspage_test

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// parsed is a page as a reader of the text format sees it.
type parsed struct {
	types   map[string]string
	samples map[string]float64 // by name{labels}
	order   []string           // families
}

var sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-z_]+="(?:[^"\\]|\\.)*",?)*\})? (\S+)$`)

// parse reads a page and fails the test at whatever breaks the text format.
func parse(t *testing.T, page []byte) parsed {
	t.Helper()
	p := parsed{types: map[string]string{}, samples: map[string]float64{}}
	if !bytes.HasSuffix(page, []byte("\n")) {
		t.Fatal("page does not end with a newline")
	}
	sc := bufio.NewScanner(bytes.NewReader(page))
	for sc.Scan() {
		if err := p.line(sc.Text()); err != nil {
			t.Fatalf("%v: %q", err, sc.Text())
		}
	}
	return p
}

func (p *parsed) line(line string) error {
	if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
		name, help, _ := strings.Cut(rest, " ")
		p.order = append(p.order, name)
		if help == "" {
			return fmt.Errorf("no help")
		}
		return nil
	}
	if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
		name, typ, _ := strings.Cut(rest, " ")
		if p.types[name] != "" || name != p.order[len(p.order)-1] {
			return fmt.Errorf("type out of place")
		}
		p.types[name] = typ
		return nil
	}
	m := sampleLine.FindStringSubmatch(line)
	if m == nil {
		return fmt.Errorf("not a sample")
	}
	return p.sample(m[1], m[2], m[3])
}

func (p *parsed) sample(name, labels, value string) error {
	family := p.order[len(p.order)-1]
	suffix, ok := strings.CutPrefix(name, family)
	isHistogram := suffix == "_bucket" || suffix == "_sum" || suffix == "_count"
	if !ok || suffix != "" && !isHistogram || isHistogram != (p.types[family] == "histogram") {
		return fmt.Errorf("sample outside its family %s of type %s", family, p.types[family])
	}
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return err
	}
	if _, double := p.samples[name+labels]; double {
		return fmt.Errorf("sample twice")
	}
	p.samples[name+labels] = v
	return nil
}
