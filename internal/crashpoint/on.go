//go:build crashpoints

package crashpoint

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Enabled reports whether places are alive in this build.
const Enabled = true

var (
	mu     sync.Mutex
	passed = map[string]int{}
)

// Hit marks a place, and ends the process there if the environment says so.
func Hit(place string) {
	name, nth, found := strings.Cut(os.Getenv("BRCTL_CRASH_AT"), ":")
	if name != place {
		return
	}
	want := 1
	if found {
		want, _ = strconv.Atoi(nth)
	}
	mu.Lock()
	passed[place]++
	reached := passed[place] == want
	mu.Unlock()
	if reached {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Minute) // the signal is on its way; go no further
	}
}
