package pd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// maxBody bounds a response: the store list of 1,000 stores is about 2 MiB.
	maxBody = 64 << 20
	// maxMessage bounds what is quoted of an error body.
	maxMessage = 512
)

// get reads one JSON document into out, from the first endpoint that answers,
// beginning with the one that did last time. Any member serves: followers hand
// requests on to the leader. A member that does not know the leader says 503, a
// hung one says nothing, and the time that is left is shared among the
// endpoints that remain.
//
// This is not the official HTTP client because that needs a gRPC connection to
// discover members first, and neither bounds responses nor single attempts.
func (c *Client) get(ctx context.Context, path string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var problems []error
	first := int(c.preferred.Load())
	for i := range c.endpoints {
		n := (first + i) % len(c.endpoints)
		err := c.getFrom(ctx, len(c.endpoints)-i, c.endpoints[n]+path, out)
		if err == nil {
			c.preferred.Store(int32(n))
			return nil
		}
		problems = append(problems, fmt.Errorf("%s: %w", c.endpoints[n], err))
		if refused(err) || ctx.Err() != nil {
			break
		}
	}
	return errors.Join(problems...)
}

// getFrom asks one endpoint, for at most its share of the time that is left.
func (c *Client) getFrom(ctx context.Context, shares int, url string, out any) error {
	deadline, _ := ctx.Deadline()
	ctx, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(shares))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read-only
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return fmt.Errorf("read response: %w", err)
	case len(body) > maxBody:
		return fmt.Errorf("response is larger than %d bytes", maxBody)
	case resp.StatusCode != http.StatusOK:
		return &statusError{code: resp.StatusCode, message: message(body)}
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("decode response: %w", err)
	}
	return nil
}

// statusError is an HTTP answer other than 200.
type statusError struct {
	code    int
	message string
}

func (e *statusError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("%d %s: %s", e.code, http.StatusText(e.code), e.message), ": ")
}

// refused reports whether err is an answer that every member would give.
func refused(err error) bool {
	var s *statusError
	return errors.As(err, &s) && s.code >= 400 && s.code < 500
}

// message makes one bounded line of an error body, which is plain text from
// PD's redirector and a bare JSON string from its handlers.
func message(body []byte) string {
	var text string
	if json.Unmarshal(body, &text) != nil {
		text = string(body)
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxMessage {
		text = text[:maxMessage] + "…"
	}
	return text
}

// withoutURL drops the URL that net/http puts before the cause: the endpoint is
// named by the caller already.
func withoutURL(err error) error {
	if cause := errors.Unwrap(err); cause != nil {
		return cause
	}
	return err
}
