package proc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Ref names one process for ever: a process id is given again, the pair of id
// and start time is not, within one boot.
type Ref struct {
	PID        int
	StartTicks uint64 // field 22 of /proc/PID/stat: clock ticks since boot
	BootID     string
}

// IsZero reports whether r names nothing.
func (r Ref) IsZero() bool { return r.PID == 0 }

// What LeftError wraps.
var (
	// ErrAlive means that the process itself lives.
	ErrAlive = errors.New("process is alive")
	// ErrOrphans means that the process itself is gone but members of its group
	// or session are not. Terminate does not signal them: without the leader
	// nothing proves that the group is still ours.
	ErrOrphans = errors.New("processes of its group are left")
)

// LeftError names what is left of a process that Start started and of those
// that it started. It wraps ErrAlive or ErrOrphans.
type LeftError struct {
	Ref  Ref
	PIDs []int // who lives, in ascending order: the process itself when it is alive, and its group
}

func (e *LeftError) Error() string {
	if e.leads() {
		return fmt.Sprintf("process %d is alive", e.Ref.PID)
	}
	return fmt.Sprintf("process %d is gone: %v: %v", e.Ref.PID, ErrOrphans, e.PIDs)
}

// Unwrap returns ErrAlive or ErrOrphans.
func (e *LeftError) Unwrap() error {
	if e.leads() {
		return ErrAlive
	}
	return ErrOrphans
}

func (e *LeftError) leads() bool { return slices.Contains(e.PIDs, e.Ref.PID) }

// Pauses while a process of an earlier life is watched: it is not our child, so
// there is nothing to wait on.
const (
	pollEvery = 20 * time.Millisecond
	killWait  = 10 * time.Second // for KILL to take effect; longer means it hangs in the kernel
	lastLook  = time.Second      // the same, when there is no more time than that
)

// refOf names the process that has this id now.
func refOf(pid int) (Ref, error) {
	boot, err := bootID()
	if err != nil {
		return Ref{}, err
	}
	s, err := readStat(pid)
	if err != nil {
		return Ref{}, err
	}
	return Ref{PID: pid, StartTicks: s.startTicks, BootID: boot}, nil
}

// Alive reports whether exactly this process still runs. One that has ended and
// was not reaped yet does not. What cannot be found out counts as no; Left says
// so instead.
func Alive(ref Ref) bool {
	ok, err := alive(ref)
	return ok && err == nil
}

func alive(ref Ref) (bool, error) {
	if ref.IsZero() {
		return false, nil
	}
	boot, err := bootID()
	if err != nil || boot != ref.BootID {
		return false, err
	}
	s, err := readStat(ref.PID)
	if isGone(err) {
		return false, nil
	}
	return err == nil && s.startTicks == ref.StartTicks && !s.dead(), err
}

// Left looks for what is left of a process that Start started, here or in an
// earlier life: nil means nothing, neither the process nor any other of its
// group and session. Else the error is a LeftError, or says why the answer is
// not known.
func Left(ref Ref) error {
	if ref.IsZero() {
		return nil
	}
	boot, err := bootID()
	if err != nil || boot != ref.BootID {
		return err
	}
	lives, err := alive(ref)
	if err != nil {
		return err
	}
	pids, err := members(ref.PID)
	if err != nil {
		return err
	}
	// A process id is not given again while a group or session of that number
	// exists: if another process has the id now, ours are gone.
	if len(pids) == 0 || !lives && slices.Contains(pids, ref.PID) {
		return nil
	}
	return &LeftError{Ref: ref, PIDs: pids}
}

// Terminate ends a process that an earlier life of ours started with Start, and
// its group: TERM, then KILL after grace. It returns nil when the process and
// its group are gone, at once when they already were, and a LeftError when the
// process is gone and others are not.
//
// TERM that was sent is followed by KILL whatever becomes of ctx. Its deadline
// shortens grace, so that time is left to see KILL take effect: 10 s, or half of
// what there is when that is less. When ctx ends while grace runs, KILL is sent
// at once and given a second. With a ctx that is already done nothing is sent.
func Terminate(ctx context.Context, ref Ref, grace time.Duration) error {
	if err := Left(ref); !errors.Is(err, ErrAlive) {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("terminate process %d: %w", ref.PID, context.Cause(ctx))
	}
	if err := signalGroup(ref.PID, unix.SIGTERM); err != nil {
		return fmt.Errorf("terminate process %d: %w", ref.PID, err)
	}
	left, err := awaitGone(ctx, ref.PID, graceWithin(ctx, grace))
	if err == nil && len(left) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(context.WithoutCancel(ctx), lastLook, context.Cause(ctx))
		defer cancel()
	}
	if _, left, err = killSession(ctx, ref.PID, killWait); err == nil && len(left) > 0 {
		err = fmt.Errorf("terminate process %d: %v still there %v after KILL", ref.PID, left, killWait)
	}
	return err
}

// graceWithin shortens grace to what the deadline of ctx leaves.
func graceWithin(ctx context.Context, grace time.Duration) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return grace
	}
	left := time.Until(deadline)
	return min(grace, left-min(killWait, left/2))
}

// killSession kills every process of the group and the session that pid leads
// and waits until they are gone. It returns whom it found, and who is left
// after limit. The caller must know that the group is ours: that the leader
// is alive or not reaped, or was seen alive and the group not empty since.
func killSession(ctx context.Context, pid int, limit time.Duration) (found, left []int, err error) {
	found, err = members(pid)
	if err != nil || len(found) == 0 {
		return nil, nil, err
	}
	deadline := time.Now().Add(limit)
	for left = found; len(left) > 0 && time.Now().Before(deadline); {
		_ = unix.Kill(-pid, unix.SIGKILL) // also who was forked since we looked
		for _, p := range left {          // and who has a group of its own in the session
			_ = unix.Kill(p, unix.SIGKILL)
		}
		if left, err = awaitGone(ctx, pid, pollEvery); err != nil {
			break
		}
	}
	return found, left, err
}

// awaitGone waits until the session that pid leads is empty or limit has
// passed, and returns who is left.
func awaitGone(ctx context.Context, pid int, limit time.Duration) ([]int, error) {
	deadline := time.Now().Add(limit)
	for {
		left, err := members(pid)
		if err != nil || len(left) == 0 || !time.Now().Before(deadline) {
			return left, err
		}
		select {
		case <-ctx.Done():
			return left, fmt.Errorf("wait for process %d to end: %w", pid, context.Cause(ctx))
		case <-time.After(pollEvery):
		}
	}
}

// signalGroup sends sig to every process of the group that pid leads. A group
// that is already gone is not a fault.
func signalGroup(pid int, sig unix.Signal) error {
	if err := unix.Kill(-pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}
