package proc

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
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

// members returns the living processes of the group or the session that pid
// leads, pid itself included.
func members(pid int) ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []int
	for _, name := range names {
		p, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		s, err := readStat(p)
		if err != nil || s.dead() {
			continue // it ended while we looked
		}
		if s.pgrp == pid || s.session == pid {
			found = append(found, p)
		}
	}
	slices.Sort(found)
	return found, nil
}
