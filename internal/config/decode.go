package config

import (
	"encoding"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Problem is one thing wrong with a configuration.
type Problem struct {
	Position string // file:line:column
	Path     string // schedules[0].cron
	Text     string // what is wrong and what is wanted
}

func (p Problem) Error() string {
	if p.Path == "" {
		return p.Position + ": " + p.Text
	}
	return fmt.Sprintf("%s: %s: %s", p.Position, p.Path, p.Text)
}

// Load reads, decodes and validates the file at path. The error joins every
// Problem found.
func Load(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(path, data)
}

// StateDir returns the state directory that the file at path names, however wrong
// the rest of it is: undoing must work on the day when it is broken. The error
// says that the file cannot be read as YAML at all.
func StateDir(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read configuration: %w", err)
	}
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		return "", syntaxProblem(path, err)
	}
	cfg := Default()
	if len(tree.Docs) > 0 && tree.Docs[0].Body != nil {
		d := decoder{file: path, positions: map[string]string{}}
		d.value(tree.Docs[0].Body, reflect.ValueOf(&cfg).Elem(), "")
	}
	return cfg.State.Dir, nil
}

// Parse decodes and validates data; file names it in problems.
func Parse(file string, data []byte) (*Config, error) {
	cfg := Default()
	cfg.file, cfg.positions = file, map[string]string{}
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, syntaxProblem(file, err)
	}
	d := decoder{file: file, positions: cfg.positions}
	if len(tree.Docs) > 0 && tree.Docs[0].Body != nil {
		d.value(tree.Docs[0].Body, reflect.ValueOf(&cfg).Elem(), "")
	}
	if len(tree.Docs) > 1 {
		d.add(tree.Docs[1].Body, "", "a second YAML document is not read; keep one per file")
	}
	problems := append(d.problems, withoutConsequences(cfg.validate(), d.problems)...)
	if len(problems) > 0 {
		return nil, joinProblems(problems)
	}
	return &cfg, nil
}

// withoutConsequences drops problems of values at, in or around a place that
// did not decode: they say nothing new.
func withoutConsequences(problems, undecoded []Problem) []Problem {
	return slices.DeleteFunc(problems, func(p Problem) bool {
		return slices.ContainsFunc(undecoded, func(u Problem) bool {
			if u.Path == "" { // a misspelt key of the top level
				return !strings.ContainsAny(p.Path, ".[")
			}
			return strings.HasPrefix(p.Path, u.Path) || strings.HasPrefix(u.Path, p.Path)
		})
	})
}

func joinProblems(problems []Problem) error {
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = p
	}
	return errors.Join(errs...)
}

func syntaxProblem(file string, err error) error {
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) {
		pos := syntax.Token.Position
		return Problem{Position: fmt.Sprintf("%s:%d:%d", file, pos.Line, pos.Column), Text: syntax.Message}
	}
	return Problem{Position: file, Text: err.Error()}
}

// decoder walks the syntax tree beside the Go value, so that it can report
// every unknown key and every bad value, each where it stands.
type decoder struct {
	file      string
	positions map[string]string
	problems  []Problem
}

func (d *decoder) position(n ast.Node) string {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		n = m.Values[0].Key // a mapping's own token is the colon behind its first key
	}
	pos := n.GetToken().Position
	return fmt.Sprintf("%s:%d:%d", d.file, pos.Line, pos.Column)
}

func (d *decoder) add(n ast.Node, path, format string, args ...any) {
	d.problems = append(d.problems, Problem{Position: d.position(n), Path: path, Text: fmt.Sprintf(format, args...)})
}

func (d *decoder) value(n ast.Node, v reflect.Value, path string) {
	d.positions[path] = d.position(n)
	switch {
	case n.Type() == ast.NullType:
		return // as if absent
	case n.Type() == ast.AnchorType || n.Type() == ast.AliasType || n.Type() == ast.TagType:
		d.add(n, path, "YAML anchors, aliases and tags are not read; write the value out")
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), path)
	case isText(v):
		d.text(n, v, path)
	case v.Kind() == reflect.Struct:
		d.mapping(n, v, path)
	case v.Kind() == reflect.Slice:
		d.sequence(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

func isText(v reflect.Value) bool {
	_, ok := v.Addr().Interface().(encoding.TextUnmarshaler)
	return ok
}

func (d *decoder) text(n ast.Node, v reflect.Value, path string) {
	if _, ok := n.(ast.ScalarNode); !ok {
		d.add(n, path, "got %s, want one value", describe(n))
		return
	}
	u := v.Addr().Interface().(encoding.TextUnmarshaler)
	if err := u.UnmarshalText([]byte(n.GetToken().Value)); err != nil {
		d.add(n, path, "%s", err)
	}
}

func (d *decoder) scalar(n ast.Node, v reflect.Value, path string) {
	if _, ok := n.(ast.ScalarNode); !ok {
		d.add(n, path, "got %s, want %s", describe(n), wanted(v))
		return
	}
	if v.Kind() == reflect.String && n.Type() != ast.StringType && n.Type() != ast.LiteralType {
		v.SetString(n.GetToken().Value) // an unquoted number or boolean given as text
		return
	}
	fraction := v.Kind() == reflect.Int && n.Type() != ast.IntegerType // the library would round it
	if err := yaml.NodeToValue(n, v.Addr().Interface()); err != nil || fraction {
		d.add(n, path, "got %q, want %s", n.GetToken().Value, wanted(v))
	}
}

func (d *decoder) sequence(n ast.Node, v reflect.Value, path string) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.add(n, path, "got %s, want a list", describe(n))
		return
	}
	items := reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values))
	for i, item := range seq.Values {
		setItemDefault(items.Index(i))
		d.value(item, items.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	v.Set(items)
}

// setItemDefault gives a new list item its defaults before it is decoded.
func setItemDefault(v reflect.Value) {
	switch p := v.Addr().Interface().(type) {
	case *Cluster:
		*p = DefaultCluster()
	case *Storage:
		*p = defaultStorage()
	case *Schedule:
		*p = defaultSchedule()
	}
}

func (d *decoder) mapping(n ast.Node, v reflect.Value, path string) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		d.add(n, path, "got %s, want keys and values", describe(n))
		return
	}
	fields := fieldsOf(v.Type())
	for _, kv := range m.Values {
		key := kv.Key.GetToken().Value
		index, known := fields[key]
		if !known {
			d.add(kv.Key, path, "unknown key %q%s", key, suggest(key, fields))
			continue
		}
		d.value(kv.Value, v.Field(index), join(path, key))
	}
}

func fieldsOf(t reflect.Type) map[string]int {
	fields := make(map[string]int, t.NumField())
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("yaml"); tag != "" {
			fields[tag] = i
		}
	}
	return fields
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func describe(n ast.Node) string {
	switch n.Type() {
	case ast.MappingType, ast.MappingValueType:
		return "keys and values"
	case ast.SequenceType:
		return "a list"
	default:
		return fmt.Sprintf("%q", n.GetToken().Value)
	}
}

func wanted(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	default:
		return "text"
	}
}

// suggest names the known key that a misspelt one is closest to.
func suggest(key string, fields map[string]int) string {
	best, bestDistance := "", 3
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if dist := distance(key, name); dist < bestDistance {
			best, bestDistance = name, dist
		}
	}
	if best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return "; known here: " + strings.Join(names, ", ")
}

// distance is the Levenshtein distance of two short words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
