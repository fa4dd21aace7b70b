package proc

import "fmt"

// State is where a process is in its life.
//
// The allowed moves, and nothing else:
//
//	from       to
//	starting   running   the fork worked
//	starting   exited    the fork did not work
//	running    stopping  Stop was called, or the context ended
//	running    exited    the leader ended by itself
//	stopping   exited    the leader ended after TERM or KILL, or was given up
//
// exited is final: the leader is reaped and its session is empty, or what could
// not be ended is listed in Result.Survivors.
type State int

// The states of a process.
const (
	Starting State = iota
	Running
	Stopping
	Exited
)

func (s State) String() string {
	switch s {
	case Starting:
		return "starting"
	case Running:
		return "running"
	case Stopping:
		return "stopping"
	case Exited:
		return "exited"
	}
	return fmt.Sprintf("State(%d)", int(s))
}

// mayBecome is the table above.
func (s State) mayBecome(to State) bool {
	switch s {
	case Starting:
		return to == Running || to == Exited
	case Running:
		return to == Stopping || to == Exited
	case Stopping:
		return to == Exited
	case Exited:
		return false
	}
	return false
}
