//go:build system

package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binaries are built by make before the tests run.
const (
	brctl        = "../bin/brctl"
	brctlCrashes = "../bin/brctl-crashpoints"
	labBinary    = "../lab/bin/lab"
)

// lab is a running cluster.
type lab struct {
	dir     string
	config  string // the lab's brctl.yaml
	Stores  []store
	Cluster uint64 `json:"cluster_id"`
	BR      string `json:"br_path"`
}

type store struct {
	ID      uint64 `json:"id"`
	Address string `json:"address"`
	Host    string `json:"host"`
}

// startLab starts a lab and waits until SQL answers.
func startLab(t *testing.T, flags ...string) *lab {
	t.Helper()
	l := &lab{dir: t.TempDir()}
	l.config = filepath.Join(l.dir, "brctl.yaml")
	cmd := exec.Command(labBinary, append([]string{"up", "--dir", l.dir}, flags...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the lab (make lab builds it): %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended already
		select {
		case <-ended:
		case <-time.After(time.Minute):
			_ = cmd.Process.Kill()
			t.Error("the lab did not end within a minute of SIGINT")
		}
	})
	info := filepath.Join(l.dir, "lab.json")
	waitFor(t, 3*time.Minute, "the lab to be ready", func() bool {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the lab ended: %v\n%s", err, out.String())
		default:
		}
		_, err := os.Stat(info)
		return err == nil
	})
	readJSON(t, info, l)
	return l
}

func waitFor(t *testing.T, limit time.Duration, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; {
		if done() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", limit, what)
		}
		time.Sleep(100 * time.Millisecond) // polling another process
	}
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
}

// ctl runs `lab ctl` and returns what it printed.
func (l *lab) ctl(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := exec.Command(labBinary, append([]string{"ctl", "--dir", l.dir}, args...)...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		t.Fatalf("lab ctl %s: %v", strings.Join(args, " "), err)
	}
	return out
}

// event is what a stand-in saw.
type event struct {
	Time        time.Time `json:"time"`
	Kind        string    `json:"kind"`
	StoreID     uint64    `json:"store_id"`
	Instance    string    `json:"instance"`
	Item        string    `json:"item"`
	Value       any       `json:"value"`
	Compression string    `json:"compression"`
	OpenStreams int       `json:"open_streams"`
	EndVersion  uint64    `json:"end_version"`
}

// events returns what the stand-ins saw since.
func (l *lab) events(t *testing.T, since time.Time) []event {
	t.Helper()
	var all []event
	if err := json.Unmarshal(l.ctl(t, "events", "-o", "json"), &all); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(e event) bool { return e.Time.Before(since) })
}

// values returns an item's value at every instance.
func (l *lab) values(t *testing.T, item string) map[string]string {
	t.Helper()
	var stores []struct {
		Instance string
		Values   map[string]any
	}
	if err := json.Unmarshal(l.ctl(t, "settings", "-o", "json"), &stores); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, s := range stores {
		out[s.Instance] = fmt.Sprint(s.Values[item])
	}
	return out
}

const numThreads = "backup.num-threads"

// setDifferent gives each instance another number of threads, so that a value
// put back at the wrong instance shows.
func (l *lab) setDifferent(t *testing.T) map[string]string {
	t.Helper()
	want := map[string]string{}
	for i, s := range l.Stores {
		n := 3 + i
		l.ctl(t, "sql", fmt.Sprintf("SET CONFIG '%s' `%s` = %d", s.Address, numThreads, n))
		want[s.Address] = fmt.Sprint(n)
	}
	if got := l.values(t, numThreads); !equal(got, want) {
		t.Fatalf("prepare settings: got %v, want %v", got, want)
	}
	return want
}

func equal(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// withConfig writes a configuration that differs from the lab's and returns
// its path.
func (l *lab) withConfig(t *testing.T, name string, replace ...string) string {
	t.Helper()
	data, err := os.ReadFile(l.config)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(replace...).Replace(string(data))
	if text == string(data) {
		t.Fatalf("nothing of %q is in %s", replace, l.config)
	}
	path := filepath.Join(l.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// call is one run of brctl.
type call struct {
	cmd      *exec.Cmd
	out, err output
	done     chan struct{}
}

// output collects what a process prints, and may be read meanwhile.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func (c *call) stderr() string { return c.err.String() }

// start starts brctl; env adds to its environment.
func start(t *testing.T, binary string, env []string, args ...string) *call {
	t.Helper()
	c := &call{cmd: exec.Command(binary, args...), done: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.err
	if err := c.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", binary, err)
	}
	go func() {
		_ = c.cmd.Wait() // the state says it
		close(c.done)
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // it has usually ended
		<-c.done
	})
	return c
}

// wait returns the exit code, -1 when killed by a signal.
func (c *call) wait(t *testing.T, limit time.Duration) int {
	t.Helper()
	select {
	case <-c.done:
	case <-time.After(limit):
		t.Fatalf("%v did not end within %s; stderr:\n%s", c.cmd.Args, limit, c.err.String())
	}
	return c.cmd.ProcessState.ExitCode()
}

func (c *call) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("send %s: %v", sig, err)
	}
}

const runLimit = 4 * time.Minute

// run runs brctl to its end and checks the exit code.
func run(t *testing.T, wantCode int, args ...string) *call {
	t.Helper()
	c := start(t, brctl, nil, args...)
	if code := c.wait(t, runLimit); code != wantCode {
		t.Fatalf("brctl %s: exit code %d, want %d\nstdout:\n%s\nstderr:\n%s",
			strings.Join(args, " "), code, wantCode, c.out.String(), c.err.String())
	}
	return c
}

// result is what run-now -o json prints, as far as tests look at it.
type result struct {
	RunID      string `json:"run_id"`
	Status     string
	Reason     string
	Message    string
	StorageURL string  `json:"storage_url"`
	BackupTS   uint64  `json:"backup_ts"`
	SizeBytes  uint64  `json:"size_bytes"`
	Duration   float64 `json:"duration_seconds"`
	Forecast   float64 `json:"forecast_duration_seconds"`
	Plan       struct {
		NumThreads  int `json:"num_threads"`
		Concurrency int
		Compression string
	}
	Settings []struct{ Instance, Name, Old, Set, Restored string }
	BR       struct {
		Argv     []string
		ExitCode int `json:"exit_code"`
	}
	ServiceSafePoint string `json:"service_safe_point"`
	Warnings         []string
}

func (c *call) result(t *testing.T) result {
	t.Helper()
	var r result
	if err := json.Unmarshal([]byte(c.out.String()), &r); err != nil {
		t.Fatalf("read result: %v\nstdout:\n%s\nstderr:\n%s", err, c.out.String(), c.err.String())
	}
	return r
}

// stateDir is where the lab's configuration keeps brctl's state.
func (l *lab) stateDir() string { return filepath.Join(l.dir, "state") }

// noBR fails the test if a br that works for this lab is alive.
func (l *lab) noBR(t *testing.T) {
	t.Helper()
	waitFor(t, 15*time.Second, "br to be gone", func() bool { return len(l.brPIDs(t)) == 0 })
}

// brPIDs lists the br processes of this lab.
func (l *lab) brPIDs(t *testing.T) []int {
	t.Helper()
	entries, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, e := range entries {
		data, err := os.ReadFile(e)
		if err != nil {
			continue // it has ended
		}
		args := strings.ReplaceAll(string(data), "\x00", " ")
		if strings.Contains(args, " backup full ") && strings.Contains(args, l.dir) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(e)))
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, pid)
		}
	}
	return out
}

// nothingPending checks that no setting is owed.
func (l *lab) nothingPending(t *testing.T) {
	t.Helper()
	c := run(t, 0, "settings", "--state-dir", l.stateDir(), "-o", "json")
	if got := strings.TrimSpace(c.out.String()); got != "[]" {
		t.Errorf("settings still changed: %s", got)
	}
}
