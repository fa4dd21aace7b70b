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

// ErrOrphans is wrapped by the error of Terminate when the process itself is
// gone but members of its group are not. They are not signalled: without the
// leader nothing proves that the group is still ours.
var ErrOrphans = errors.New("processes of its group are left")

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
// was not reaped yet does not.
func Alive(ref Ref) bool {
	if ref.IsZero() {
		return false
	}
	boot, err := bootID()
	if err != nil || boot != ref.BootID {
		return false
	}
	s, err := readStat(ref.PID)
	return err == nil && s.startTicks == ref.StartTicks && !s.dead()
}

// Terminate ends a process that an earlier life of ours started with Start, and
// its group: TERM, then KILL after grace. It returns nil when the process and
// its group are gone, at once when they already were. A done ctx does not
// shorten the grace time; it only ends the waiting, with ctx's error.
func Terminate(ctx context.Context, ref Ref, grace time.Duration) error {
	if !Alive(ref) {
		return checkOrphans(ref)
	}
	if err := signalGroup(ref.PID, unix.SIGTERM); err != nil {
		return fmt.Errorf("terminate process %d: %w", ref.PID, err)
	}
	left, err := awaitGone(ctx, ref.PID, grace)
	if err != nil || len(left) == 0 {
		return err
	}
	if _, left, err = killSession(ctx, ref.PID, killWait); err == nil && len(left) > 0 {
		err = fmt.Errorf("terminate process %d: %v still there %v after KILL", ref.PID, left, killWait)
	}
	return err
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

// checkOrphans looks for a group that outlived its leader. A process id is not
// given again while a group of that number exists, so if another process has
// the id now, our group is gone.
func checkOrphans(ref Ref) error {
	boot, err := bootID()
	if err != nil || boot != ref.BootID || ref.IsZero() {
		return err
	}
	left, err := members(ref.PID)
	if err != nil || len(left) == 0 || slices.Contains(left, ref.PID) {
		return err
	}
	return fmt.Errorf("process %d is gone: %w: %v", ref.PID, ErrOrphans, left)
}

// signalGroup sends sig to every process of the group that pid leads. A group
// that is already gone is not a fault.
func signalGroup(pid int, sig unix.Signal) error {
	if err := unix.Kill(-pid, sig); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}
