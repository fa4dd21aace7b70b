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
// requests on to the leader. While PD elects a leader none of them can, so the
// endpoints are asked again until Config.Timeout is over.
//
// This is not the official HTTP client because that needs a gRPC connection to
// discover members first, and bounds neither responses nor single attempts.
func (c *Client) get(ctx context.Context, path string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var last error
	for {
		again, err := c.askAll(ctx, path, out)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // a round that was cut short tells less
			last = err
		}
		if !again || !pause(ctx) {
			return last
		}
	}
}

// askAll asks each endpoint once. A member that does not know the leader says
// 503, a hung one says nothing, so the time that is left is shared among the
// endpoints that remain. It reports whether asking again may help.
func (c *Client) askAll(ctx context.Context, path string, out any) (again bool, err error) {
	var problems []error
	first := int(c.preferred.Load())
	for i := range c.endpoints {
		n := (first + i) % len(c.endpoints)
		err := c.ask(ctx, len(c.endpoints)-i, c.endpoints[n]+path, out)
		if err == nil {
			c.preferred.Store(int32(n))
			return false, nil
		}
		problems = append(problems, fmt.Errorf("%s: %w", c.endpoints[n], err))
		again = again || transient(err)
		if refused(err) || ctx.Err() != nil {
			break
		}
	}
	return again, errors.Join(problems...)
}

// ask asks one endpoint, for at most its share of the time that is left.
func (c *Client) ask(ctx context.Context, shares int, url string, out any) error {
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
	case resp.StatusCode != http.StatusOK:
		return &answerError{resp.StatusCode, message(body)}
	case len(body) > maxBody:
		return &answerError{resp.StatusCode, fmt.Sprintf("response is larger than %d bytes", maxBody)}
	}
	if err := json.Unmarshal(body, out); err != nil {
		return &answerError{resp.StatusCode, fmt.Sprintf("decode response: %v", err)}
	}
	return nil
}

// answerError is an answer that is of no use: a status other than 200, or a body
// that is not what it should be.
type answerError struct {
	status  int
	message string
}

func (e *answerError) Error() string {
	if e.status == http.StatusOK {
		return e.message
	}
	return strings.TrimSuffix(fmt.Sprintf("%d %s: %s", e.status, http.StatusText(e.status), e.message), ": ")
}

// transient reports whether the same endpoint may answer a moment later: the
// network had the problem, or PD is electing a leader. Then its redirector says
// 503, or 500 while it still tries the leader that has died.
func transient(err error) bool {
	var a *answerError
	if !errors.As(err, &a) {
		return true
	}
	return a.status == http.StatusServiceUnavailable || strings.Contains(a.message, "[PD:apiutil:ErrRedirect")
}

// refused reports whether err is an answer that every member would give.
func refused(err error) bool {
	var a *answerError
	return errors.As(err, &a) && a.status >= 400 && a.status < 500
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
