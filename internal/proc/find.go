package proc

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// maxArgv is how many bytes of a command line are looked at; the kernel's own
// limit for arguments and environment together is 6 MiB at most.
const maxArgv = 6 << 20

// Find names the processes that Start may have started, here or in an earlier
// life, and whose argument vector, the program first, is one that match wants:
// living leaders of a session of their own that run as our own user. One that
// ends while it is looked at is left out.
//
// The kernel reads an argument vector from the process's memory, which can block
// while that process hangs: bound the call from outside.
func Find(match func(argv []string) bool) ([]Ref, error) {
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	leaders := map[int]uint64{} // start ticks by id
	var order []int
	err = eachProcess(func(pid int, s stat) {
		if s.session == pid {
			leaders[pid] = s.startTicks
			order = append(order, pid)
		}
	})
	if err != nil {
		return nil, err
	}
	var found []Ref
	for _, pid := range order {
		ref := Ref{PID: pid, StartTicks: leaders[pid], BootID: boot}
		ok, err := ref.hasArgv(match)
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, ref)
		}
	}
	return found, nil
}

// hasArgv reports whether the process is ours and match wants its arguments. It
// asks last whether it is still the same process whose arguments were read.
func (r Ref) hasArgv(match func([]string) bool) (bool, error) {
	uid, err := effectiveUID(r.PID)
	if isGone(err) || err == nil && uid != os.Geteuid() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	argv, err := readArgv(r.PID)
	if isGone(err) {
		return false, nil
	}
	if err != nil || !match(argv) {
		return false, err
	}
	return alive(r)
}

// effectiveUID reads it from /proc/PID/status: the owner of the directory is
// root for a process that may not be dumped, whoever runs it.
func effectiveUID(pid int) (int, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, fmt.Errorf("read process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(b)) {
		if ids, ok := strings.CutPrefix(line, "Uid:"); ok {
			var own, effective int
			if _, err := fmt.Sscan(ids, &own, &effective); err != nil {
				return 0, fmt.Errorf("read process %d: user ids %q: %w", pid, ids, err)
			}
			return effective, nil
		}
	}
	return 0, fmt.Errorf("read process %d: status has no user ids", pid)
}

// readArgv returns the arguments of a process, the program first. Each ends with
// a zero byte.
func readArgv(pid int) ([]string, error) {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return nil, fmt.Errorf("read arguments of process %d: %w", pid, err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxArgv))
	if err != nil {
		return nil, fmt.Errorf("read arguments of process %d: %w", pid, err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00"), nil
}
