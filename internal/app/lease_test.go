package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/pkg/runner"
)

// leaseRecorder remembers whether the lease was given back, and whether that
// was possible.
type leaseRecorder struct {
	runner.Lease
	releases   int
	releaseCtx error
	fails      error
}

func (l *leaseRecorder) Release(ctx context.Context) error {
	l.releases++
	l.releaseCtx = ctx.Err()
	return l.fails
}

func TestUndoingHappensUnderTheLeaseAndNeverUnderAnothers(t *testing.T) {
	held := &runner.HeldError{RunID: "01JOTHER", Host: "h9", Since: at(0)}
	for name, tc := range map[string]struct {
		taking, releasing error
		undone            bool
		held              error
		warning           string // a part of it
	}{
		"the lease is free":          {undone: true},
		"another brctl has it":       {taking: held, held: held},
		"so it does, deep inside":    {taking: errors.Join(errors.New("acquire lease"), held), held: held},
		"etcd does not answer":       {taking: context.DeadlineExceeded, undone: true, warning: "without the cluster's lease: context deadline exceeded"},
		"it cannot be given back":    {releasing: errors.New("etcd is gone"), undone: true, warning: "release the cluster's lease: etcd is gone"},
		"the taking was interrupted": {taking: context.Canceled, undone: true, warning: "without the cluster's lease"},
	} {
		t.Run(name, func(t *testing.T) {
			lease := &leaseRecorder{fails: tc.releasing}
			take := func(context.Context, *runner.Run) (runner.Lease, error) { return lease, tc.taking }
			var warnings []string
			undone := 0
			err := underLease(t.Context(), take, func(text string) { warnings = append(warnings, text) }, func() {
				undone++
				if lease.releases > 0 {
					t.Error("undone after the lease was given back")
				}
			})
			if !errors.Is(err, tc.held) || (undone == 1) != tc.undone || undone > 1 {
				t.Errorf("got %v and undone %d times, want %v and undone %v", err, undone, tc.held, tc.undone)
			}
			if wantReleases := map[bool]int{true: 1, false: 0}[tc.taking == nil]; lease.releases != wantReleases {
				t.Errorf("lease given back %d times, want %d", lease.releases, wantReleases)
			}
			if text := strings.Join(warnings, "\n"); tc.warning == "" && text != "" || !strings.Contains(text, tc.warning) {
				t.Errorf("warnings %q, want %q in them", text, tc.warning)
			}
		})
	}
}

// Ctrl-C during the undoing must not leave the lease behind: for its TTL it
// would keep every other brctl out.
func TestTheLeaseIsGivenBackAlthoughTheContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	lease := &leaseRecorder{}
	take := func(context.Context, *runner.Run) (runner.Lease, error) { return lease, nil }
	if err := underLease(ctx, take, func(text string) { t.Error(text) }, cancel); err != nil {
		t.Fatal(err)
	}
	if lease.releases != 1 || lease.releaseCtx != nil {
		t.Errorf("%d releases, under %v; want one, under a context of its own", lease.releases, lease.releaseCtx)
	}
}

func TestAStateDirectoryKeepsItsNameForLife(t *testing.T) {
	dir := t.TempDir()
	first, err := stateID(dir)
	if err != nil || first == "" {
		t.Fatalf("got %q, %v", first, err)
	}
	again, err := stateID(dir)
	if err != nil || again != first {
		t.Errorf("got %q, %v the second time, want %q", again, err, first)
	}
	other, err := stateID(t.TempDir())
	if err != nil || other == first {
		t.Errorf("another directory has the name %q too (%v)", other, err)
	}
	if _, err := stateID(filepath.Join(dir, "missing")); err == nil {
		t.Error("a directory that does not exist got a name")
	}
	unreadable := t.TempDir()
	if err := os.Mkdir(filepath.Join(unreadable, "id"), 0o700); err != nil {
		t.Fatal(err)
	}
	if id, err := stateID(unreadable); err == nil {
		t.Errorf("a name that cannot be read was replaced by %q", id)
	}
}

func TestTheKindOfATroubleOutlivesTheTroubleOfClosing(t *testing.T) {
	closing := errors.New("unlock state")
	err := keepTrouble(trouble(KindUnavailable, "is PD up?", "ask PD"), closing)
	var e *Error
	if !errors.As(err, &e) || e.Kind != KindUnavailable || e.Hint != "is PD up?" || !errors.Is(err, closing) {
		t.Errorf("got %#v", err)
	}
	if err := keepTrouble(context.Canceled, nil); err != context.Canceled { //nolint:errorlint // the very same error
		t.Errorf("got %v", err)
	}
	if err := keepTrouble(context.Canceled, closing); !errors.Is(err, context.Canceled) || !errors.Is(err, closing) {
		t.Errorf("got %v", err)
	}
}

func TestAStateDirectoryInUseIsRefusedForNow(t *testing.T) {
	dir := t.TempDir()
	lock, err := lockState(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = lockState(dir)
	var e *Error
	if !errors.As(err, &e) || e.Kind != KindDeferred || e.Hint == "" {
		t.Errorf("got %v, want a refusal for now with what to do", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	lock, err = lockState(dir)
	if err != nil {
		t.Fatalf("after it was given up: %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
}

func TestErrorsOfSeveralJournalsAreAllSaidWithTheFirstOnesKind(t *testing.T) {
	first, second := trouble(KindDeferred, "end it first", "br is alive"), trouble(KindFailed, "", "disk full")
	err := firstKind([]error{first, second})
	var e *Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	got := []any{e.Kind, e.Hint, e.Error()}
	if diff := cmp.Diff([]any{KindDeferred, "end it first", "br is alive\ndisk full"}, got); diff != "" {
		t.Error(diff)
	}
	plain := errors.New("plain")
	if err := firstKind([]error{plain}); !errors.Is(err, plain) {
		t.Errorf("got %v", err)
	}
}
