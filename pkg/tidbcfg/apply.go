package tidbcfg

import (
	"context"
	"errors"
	"fmt"

	"github.com/brctl/brctl/pkg/policy"
)

// Apply sends every setting to its instance and judges each by reading the
// value back; see policy.SetState. Instances are changed in parallel, the
// settings of one instance in their order. Results come in the order of
// settings.
//
// An instance that gives no answer within StatementTimeout gets SetUnknown: the
// request may still reach it. Its later settings are then not sent at all
// (SetRefused, with the reason), because they would wait for the same node.
func (c *Client) Apply(ctx context.Context, settings []policy.Setting) []policy.SetResult {
	results := make([]policy.SetResult, len(settings))
	instanceOf := func(i int) string { return settings[i].Instance }
	c.perInstance(len(settings), instanceOf, func(_ string, indexes []int) {
		s, err := c.session(ctx)
		if err != nil {
			for _, i := range indexes {
				results[i] = notSent(settings[i], err)
			}
			return
		}
		defer s.close()
		s.applyInOrder(ctx, settings, indexes, results)
	})
	return results
}

// applyInOrder stops sending when the connection got stuck.
func (s *session) applyInOrder(ctx context.Context, settings []policy.Setting, indexes []int, results []policy.SetResult) {
	for n, i := range indexes {
		var stuck error
		if results[i], stuck = s.apply(ctx, settings[i]); stuck == nil {
			continue
		}
		s.discard()
		for _, rest := range indexes[n+1:] {
			results[rest] = notSent(settings[rest], fmt.Errorf("%s before it: %w", settings[i].Name, stuck))
		}
		return
	}
}

func notSent(s policy.Setting, err error) policy.SetResult {
	return policy.SetResult{Setting: s, State: policy.SetRefused, Message: "not sent: " + err.Error()}
}

// apply sends one setting. The error is set when the connection must not be
// used any more.
func (s *session) apply(ctx context.Context, want policy.Setting) (policy.SetResult, error) {
	statement, err := Statement(want)
	if err != nil {
		return notSent(want, err), nil
	}
	r := s.set(ctx, statement)
	if r.err != nil {
		return judge(want, r, policy.Reading{}), r.stuck()
	}
	values, err := s.read(ctx, want.Instance, []string{want.Name})
	got := policy.Reading{SettingKey: want.SettingKey}
	fill(&got, values, err)
	return judge(want, r, got), stuckError(err)
}

// reply is what TiDB said to one SET CONFIG.
type reply struct {
	err      error
	warnings []string
}

// set sends the statement and reads its warnings on the same connection.
func (s *session) set(ctx context.Context, statement string) reply {
	if err := s.exec(ctx, statement); err != nil {
		return reply{err: err}
	}
	warnings, err := s.warnings(ctx)
	return reply{err: err, warnings: warnings}
}

func (r reply) stuck() error { return stuckError(r.err) }

// stuckError returns err when it came from the connection and not from the
// server or from a node behind it.
func stuckError(err error) error {
	var text nodeError
	if err == nil || answered(err) || errors.As(err, &text) {
		return nil
	}
	return err
}
