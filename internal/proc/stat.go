package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// stat is the part of /proc/PID/stat (proc_pid_stat(5)) that identifies a
// process.
type stat struct {
	state      byte // field 3: R running, S sleeping, Z zombie, X dead, …
	pgrp       int  // field 5
	session    int  // field 6
	threads    int  // field 20
	startTicks uint64
}

// dead reports whether the process has ended and only its entry is left. The
// state is that of the first thread alone, so other threads must be gone too: a
// killed process with one thread in a system call that cannot be interrupted
// shows Z, and still holds its files.
func (s stat) dead() bool {
	return s.threads <= 1 && (s.state == 'Z' || s.state == 'X' || s.state == 'x')
}

func readStat(pid int) (stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	s, err := parseStat(string(b))
	if err != nil {
		return stat{}, fmt.Errorf("read process %d: %w", pid, err)
	}
	return s, nil
}

// parseStat reads one stat line. Field 2, the program's name, stands in
// parentheses and may hold spaces and parentheses itself, so the fields are
// counted from the last ')'.
func parseStat(line string) (stat, error) {
	const after = 3 // number of the first field after the name
	end := strings.LastIndexByte(line, ')')
	if end < 0 {
		return stat{}, fmt.Errorf("stat line %q has no name in parentheses", line)
	}
	f := strings.Fields(line[end+1:])
	if len(f) < 22-after+1 {
		return stat{}, fmt.Errorf("stat line has %d fields after the name, want 20 or more", len(f))
	}
	pgrp, err := strconv.Atoi(f[5-after])
	if err != nil {
		return stat{}, fmt.Errorf("stat field 5: %w", err)
	}
	session, err := strconv.Atoi(f[6-after])
	if err != nil {
		return stat{}, fmt.Errorf("stat field 6: %w", err)
	}
	threads, err := strconv.Atoi(f[20-after])
	if err != nil {
		return stat{}, fmt.Errorf("stat field 20: %w", err)
	}
	ticks, err := strconv.ParseUint(f[22-after], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("stat field 22: %w", err)
	}
	return stat{state: f[0][0], pgrp: pgrp, session: session, threads: threads, startTicks: ticks}, nil
}

// bootID identifies this boot of the machine: process ids and start ticks mean
// nothing across two boots.
func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// isGone reports whether a read below /proc/PID failed because there is no such
// process (any more), or because another user's is hidden from us. Any other
// fault, such as too many open files, says nothing about the process.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, fs.ErrPermission)
}

// eachProcess calls visit for every living process, in ascending order of ids.
func eachProcess(visit func(pid int, s stat)) error {
	dir, err := os.Open("/proc")
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	names, err := dir.Readdirnames(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	for _, pid := range pids {
		s, err := readStat(pid)
		if err != nil && !isGone(err) {
			return err
		}
		if err == nil && !s.dead() {
			visit(pid, s)
		}
	}
	return nil
}

// members returns the living processes of the group or the session that pid
// leads, pid itself included, in ascending order.
func members(pid int) ([]int, error) {
	var found []int
	err := eachProcess(func(p int, s stat) {
		if s.pgrp == pid || s.session == pid {
			found = append(found, p)
		}
	})
	return found, err
}
