package tidbcfg

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/brctl/brctl/pkg/policy"
)

// Read returns the current values of keys, in their order. A value that could
// not be read is never replaced by a default: Known is false and Err says why,
// for example that the TiKV has no status address.
func (c *Client) Read(ctx context.Context, keys []policy.SettingKey) []policy.Reading {
	out := make([]policy.Reading, len(keys))
	for i, k := range keys {
		out[i].SettingKey = k
	}
	instanceOf := func(i int) string { return keys[i].Instance }
	c.perInstance(len(keys), instanceOf, func(instance string, indexes []int) {
		var items []string
		for _, i := range indexes {
			if readablePattern.MatchString(keys[i].Name) {
				items = append(items, keys[i].Name)
			}
		}
		values, err := c.readInstance(ctx, instance, items)
		for _, i := range indexes {
			fill(&out[i], values, err)
		}
	})
	return out
}

func fill(r *policy.Reading, values map[string]string, err error) {
	if r.Value, r.Known = values[r.Name]; r.Known {
		return
	}
	switch {
	case !readablePattern.MatchString(r.Name):
		err = errors.New("not the name of a setting")
	case err == nil:
		err = errors.New("TiDB listed no such setting for this instance")
	}
	r.Err = fmt.Errorf("read %s: %w", r.SettingKey, err)
}

func (c *Client) readInstance(ctx context.Context, instance string, items []string) (map[string]string, error) {
	s, err := c.session(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	return s.read(ctx, instance, items)
}

// read returns the values that instance reported. Where one is missing, the
// error holds TiDB's warnings; the values that are there count all the same.
func (s *session) read(ctx context.Context, instance string, items []string) (map[string]string, error) {
	if len(items) == 0 {
		return nil, nil
	}
	statement, err := configQuery(instance, items)
	if err != nil {
		return nil, err
	}
	rows, err := s.query(ctx, statement)
	if err != nil {
		return nil, err
	}
	values := make(map[string]string, len(rows))
	for _, row := range rows {
		values[row[0]] = row[1]
	}
	if len(values) == len(items) {
		return values, nil
	}
	warnings, err := s.warnings(ctx)
	if err != nil {
		return values, err
	}
	return values, joinWarnings(warnings)
}

func joinWarnings(warnings []string) error {
	if len(warnings) == 0 {
		return nil
	}
	return nodeError(strings.Join(warnings, "; "))
}

// nodeError is TiDB's report about a node behind it; the connection to TiDB is
// fine.
type nodeError string

func (e nodeError) Error() string { return string(e) }
