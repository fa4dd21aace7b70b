package gcwatch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brctl/brctl/pkg/gcwatch"
	"github.com/brctl/brctl/pkg/policy"
)

// stubPD answers by the script of a test.
type stubPD struct {
	poll func(ctx context.Context) error
}

func (s stubPD) SafePoints(ctx context.Context) (policy.SafePoints, error) {
	return policy.SafePoints{GC: policy.TSFromTime(time.Now().Add(-10 * time.Minute))}, s.poll(ctx)
}

func (s stubPD) TSO(context.Context) (policy.TS, error) { return policy.TSFromTime(time.Now()), nil }

// watch runs a Watcher for a while of fake time and returns its reports.
func watch(t *testing.T, d time.Duration, poll func(context.Context) error) []gcwatch.Report {
	t.Helper()
	var reports []gcwatch.Report
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	w := gcwatch.NewWatcher(stubPD{poll}, gcwatch.Config{}, func(r gcwatch.Report) { reports = append(reports, r) })
	if err := w.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Run ended with %v", err)
	}
	return reports
}

var errElection = errors.New("redirect finds no leader")

func TestASingleFailedPollIsOnlyCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		reports := watch(t, 35*time.Second, func(context.Context) error { // polls at 0, 10, 20 and 30 s
			n++
			if n == 2 || n == 3 {
				return errElection
			}
			return nil
		})
		if len(reports) != 2 {
			t.Fatalf("got %d reports, want those of the two good polls", len(reports))
		}
		last := reports[1]
		if last.Gone || last.Err != nil || last.Errors != 2 {
			t.Errorf("got %+v", last)
		}
		if last.View.Age.Behind != 10*time.Minute {
			t.Errorf("age is %s", last.View.Age)
		}
	})
}

func TestAPDThatIsGoneIsReportedOnceAndItsReturnToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		gone := func() bool { d := time.Since(began); return d > 0 && d < 20*time.Minute }
		reports := watch(t, 20*time.Minute+time.Second, func(context.Context) error {
			if gone() {
				return errElection
			}
			return nil
		})
		if len(reports) != 3 {
			t.Fatalf("got %d reports, want: answers, gone, answers", len(reports))
		}
		lost := reports[1]
		if !lost.Gone || lost.Silence != gcwatch.DefaultTolerance || !errors.Is(lost.Err, errElection) || lost.Errors != 30 {
			t.Errorf("got %+v", lost)
		}
		if !lost.View.Now.Equal(began) {
			t.Errorf("the last view is gone too: %+v", lost.View)
		}
		if back := reports[2]; back.Gone || back.Err != nil || back.Silence != 0 {
			t.Errorf("got %+v", back)
		}
	})
}

func TestAPDThatHangsIsGoneToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reports := watch(t, 6*time.Minute, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		if len(reports) != 1 || !reports[0].Gone || reports[0].Silence > gcwatch.DefaultTolerance+2*gcwatch.DefaultInterval {
			t.Errorf("got %+v", reports)
		}
	})
}

func TestRunEndsWithTheCauseOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := errors.New("stopped by operator")
		ctx, cancel := context.WithCancelCause(t.Context())
		w := gcwatch.NewWatcher(stubPD{func(context.Context) error { return nil }}, gcwatch.Config{}, func(gcwatch.Report) { cancel(stop) })
		if err := w.Run(ctx); !errors.Is(err, stop) {
			t.Errorf("got %v", err)
		}
	})
}
