package cli

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/brctl/brctl/internal/app"
)

// says hands over each text that is written to it.
type says chan string

func (s says) Write(p []byte) (int, error) {
	s <- string(p)
	return len(p), nil
}

func (s says) next(t *testing.T) string {
	t.Helper()
	select {
	case text := <-s:
		return text
	case <-time.After(10 * time.Second):
		t.Fatal("nothing is said about a signal")
		return ""
	}
}

func TestTheFirstSignalStopsAndTheSecondOnlyAsksForPatience(t *testing.T) {
	said := make(says)
	ctx, release := stopOnSignal(t.Context(), streams{err: said})
	for _, want := range []string{"got interrupt: stopping br, then putting settings back", "still putting settings back; please wait"} {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if text := said.next(t); !strings.Contains(text, want) {
			t.Errorf("said %q, want %q", text, want)
		}
	}
	<-ctx.Done()
	release()
	if cause := context.Cause(ctx); !errors.Is(cause, app.ErrStoppedByOperator) {
		t.Errorf("the run is stopped for %v, want an operator's wish", cause)
	}
}

func TestARunThatEndsByItselfIsNotStopped(t *testing.T) {
	ctx, release := stopOnSignal(t.Context(), streams{err: make(says)})
	if ctx.Err() != nil {
		t.Error("cancelled without a signal")
	}
	release()
	if cause := context.Cause(ctx); errors.Is(cause, app.ErrStoppedByOperator) {
		t.Errorf("ended for %v", cause)
	}
}
