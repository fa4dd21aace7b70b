package state

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// column is one column of a row type: its name and the field that it is read
// into and written from. The field is a pointer that database/sql understands
// or one of the adapters below.
type column struct {
	name  string
	field any
}

func names(cols []column) string {
	out := make([]string, len(cols))
	for i, c := range cols {
		out[i] = c.name
	}
	return strings.Join(out, ", ")
}

func fields(cols []column) []any {
	out := make([]any, len(cols))
	for i, c := range cols {
		out[i] = c.field
	}
	return out
}

// insert is the INSERT of a whole row.
func insert(table string, cols []column) (string, []any) {
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(cols)), ", ")
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table, names(cols), marks), fields(cols)
}

// decimal keeps an unsigned 64-bit number as text: SQLite's integers end at
// 2^63-1.
type decimal[T ~uint64] struct{ v *T }

func asDecimal[T ~uint64](v *T) decimal[T] { return decimal[T]{v} }

// Value implements driver.Valuer.
func (d decimal[T]) Value() (driver.Value, error) { return strconv.FormatUint(uint64(*d.v), 10), nil }

// Scan implements sql.Scanner.
func (d decimal[T]) Scan(src any) error {
	text, ok := src.(string)
	if !ok {
		return fmt.Errorf("scan number: got %T, want text", src)
	}
	n, err := strconv.ParseUint(text, 10, 64)
	*d.v = T(n)
	return err
}

// instant keeps a time as milliseconds since the Unix epoch, the zero time as
// NULL.
type instant struct{ v *time.Time }

// Value implements driver.Valuer.
func (i instant) Value() (driver.Value, error) {
	if i.v.IsZero() {
		return nil, nil
	}
	return i.v.UnixMilli(), nil
}

// Scan implements sql.Scanner.
func (i instant) Scan(src any) error {
	switch ms := src.(type) {
	case nil:
		*i.v = time.Time{}
	case int64:
		*i.v = time.UnixMilli(ms).UTC()
	default:
		return fmt.Errorf("scan time: got %T, want an integer", src)
	}
	return nil
}

// span keeps a duration as milliseconds.
type span struct{ v *time.Duration }

// Value implements driver.Valuer.
func (s span) Value() (driver.Value, error) { return s.v.Milliseconds(), nil }

// Scan implements sql.Scanner.
func (s span) Scan(src any) error {
	ms, ok := src.(int64)
	if !ok {
		return fmt.Errorf("scan duration: got %T, want an integer", src)
	}
	*s.v = time.Duration(ms) * time.Millisecond
	return nil
}

// document keeps a value as JSON, nil as NULL. A number without a type of its
// own is read as a json.Number, since a float64 would lose digits of a TS.
type document[T any] struct{ v **T }

func asJSON[T any](v **T) document[T] { return document[T]{v} }

// Value implements driver.Valuer.
func (d document[T]) Value() (driver.Value, error) {
	if *d.v == nil {
		return nil, nil
	}
	text, err := json.Marshal(*d.v)
	return string(text), err
}

// Scan implements sql.Scanner.
func (d document[T]) Scan(src any) error {
	if src == nil {
		*d.v = nil
		return nil
	}
	text, ok := src.(string)
	if !ok {
		return fmt.Errorf("scan JSON: got %T, want text", src)
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	*d.v = new(T)
	return dec.Decode(*d.v)
}

// lines keeps a list of texts as a JSON array, never NULL.
type lines struct{ v *[]string }

// Value implements driver.Valuer.
func (l lines) Value() (driver.Value, error) {
	if len(*l.v) == 0 {
		return "[]", nil
	}
	text, err := json.Marshal(*l.v)
	return string(text), err
}

// Scan implements sql.Scanner.
func (l lines) Scan(src any) error {
	text, ok := src.(string)
	if !ok {
		return fmt.Errorf("scan list: got %T, want text", src)
	}
	*l.v = nil
	if text == "[]" {
		return nil
	}
	return json.Unmarshal([]byte(text), l.v)
}
