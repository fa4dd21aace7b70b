package proc_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childEnv names what the test binary does instead of testing, when a test
// starts it as the child.
const childEnv = "PROC_TEST_CHILD"

func TestMain(m *testing.M) {
	if role, ok := os.LookupEnv(childEnv); ok {
		child(role)
		return
	}
	os.Exit(m.Run())
}

func child(role string) {
	switch role {
	case "ignore-term":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		fmt.Println("ready")
		time.Sleep(time.Minute) // longer than any test waits
	case "exit-on-term":
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM, syscall.SIGHUP)
		fmt.Println("ready")
		fmt.Println("got", <-c)
		os.Exit(3)
	case "leave-child": // the leader ends; a child that ignores signals stays
		fmt.Println("child", spawn("ignore-term", nil).Process.Pid)
	case "leave-child-own-group":
		fmt.Println("child", spawn("ignore-term", &syscall.SysProcAttr{Setpgid: true}).Process.Pid)
	case "leave-child-own-session": // out of our reach, and holding the output open
		fmt.Println("child", spawn("ignore-term", &syscall.SysProcAttr{Setsid: true}).Process.Pid)
	case "wrap": // as `tiup br`: its child does the work, it passes no signal on
		signal.Ignore(syscall.SIGINT)
		_ = spawn("ignore-term", nil).Wait()
	case "long-line":
		fmt.Fprintln(os.Stderr, strings.Repeat("x", 8<<20))
		fmt.Fprintln(os.Stderr, "Error: AccessDenied")
		os.Exit(1)
	case "environment":
		fmt.Println(strings.Join(os.Environ(), "\n"))
	case "first-thread-ends":
		endFirstThread()
	case "kill-self":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "parent": // starts a child on a terminal, tells its ref, and waits to be killed
		runAsParent()
	}
}

// endFirstThread ends the thread that bears the process's id, and waits.
func endFirstThread() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	fmt.Println("ready")
	for range 100 { // goroutines that keep their thread, until one has the first
		go func() {
			runtime.LockOSThread()
			if syscall.Gettid() == os.Getpid() {
				_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
			}
			select {}
		}()
	}
	time.Sleep(time.Minute) // longer than any test waits
}

// spawn starts the test binary in another role, sharing this process's output,
// and returns when it has said that it is ready.
func spawn(role string, attr *syscall.SysProcAttr) *exec.Cmd {
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{childEnv + "=" + role}
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = w, os.Stderr, attr
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	_ = w.Close()
	_, _ = r.Read(make([]byte, 16)) // "ready"
	return cmd
}
