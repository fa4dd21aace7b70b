package runner

import (
	"fmt"
	"runtime/debug"
)

// panicError is a panic that was caught, with the stack that tells where it
// came from.
type panicError struct {
	value any
	stack string
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// guarded calls f and turns a panic of f into a *panicError. Every step is
// called through it, and so is every goroutine of a run: a fault of ours must
// not keep a run from its end, where br is stopped and settings go back.
func guarded(f func() error) (err error) {
	defer func() {
		p := recover()
		if first, ok := p.(*panicError); ok {
			err = first // passed on from another goroutine
		} else if p != nil {
			err = &panicError{value: p, stack: string(debug.Stack())}
		}
	}()
	return f()
}
