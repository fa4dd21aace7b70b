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

// saidNext waits for the next text that is said.
func saidNext(t *testing.T, said <-chan string) string {
	t.Helper()
	select {
	case text := <-said:
		return text
	case <-time.After(10 * time.Second):
		t.Fatal("nothing is said about a signal")
		return ""
	}
}

func TestTheFirstSignalStopsAndTheSecondOnlyAsksForPatience(t *testing.T) {
	said := make(chan string)
	ctx, release := stopOnSignal(t.Context(), func(text string) { said <- text })
	for _, want := range []string{"interrupt: stopping br, then putting settings back", "settings are still being put back; please wait"} {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		if text := saidNext(t, said); !strings.Contains(text, want) {
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
	ctx, release := stopOnSignal(t.Context(), func(text string) { t.Errorf("said %q", text) })
	if ctx.Err() != nil {
		t.Error("cancelled without a signal")
	}
	release()
	if cause := context.Cause(ctx); errors.Is(cause, app.ErrStoppedByOperator) {
		t.Errorf("ended for %v", cause)
	}
}
