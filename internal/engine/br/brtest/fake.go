package brtest

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/brctl/brctl/pkg/policy"
)

// serviceID is what the fake calls its service safepoint.
const serviceID = "br-00000000-0000-4000-8000-000000000001"

// holdRole is the role of the child that LeaveChild leaves.
const holdRole = "hold"

// fake is one running fake br.
type fake struct {
	Behaviour
	dir     string // target
	log     io.Writer
	signals chan os.Signal
	ts      policy.TS
}

// run is the whole life of a fake; it returns the exit status.
func run(role string, args []string) int {
	if role == holdRole {
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
		fmt.Println("holding")
		time.Sleep(time.Minute)
		return 0
	}
	f := &fake{log: io.Discard, signals: make(chan os.Signal, 4)}
	if err := json.Unmarshal([]byte(role), &f.Behaviour); err != nil {
		return f.fail(err.Error())
	}
	if len(args) == 1 && args[0] == "--version" {
		return f.version()
	}
	signal.Notify(f.signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	if f.Scenario == EchoArgs {
		fmt.Fprintln(os.Stderr, strings.Join(args, " "))
		fmt.Fprintln(os.Stderr, strings.Join(os.Environ(), " "))
		return f.fail("AccessDenied for " + strings.Join(os.Environ(), " "))
	}
	if err := f.parse(args); err != nil {
		return f.fail(err.Error())
	}
	return f.play()
}

func (f *fake) version() int {
	if f.Scenario == WrongProgram {
		fmt.Fprintln(os.Stderr, "bridge name\tbridge id")
		return 1
	}
	fmt.Printf("Release Version: %s\nGit Commit Hash: None\nGo Version: go1.23\nRace Enabled: false\n", f.Release)
	return 0
}

// parse takes the flags that matter and refuses what br refuses.
func (f *fake) parse(args []string) error {
	if len(args) < 2 || args[0] != "backup" || args[1] != "full" {
		return fmt.Errorf("unknown command %q for \"br\"", strings.Join(args, " "))
	}
	set := flag.NewFlagSet("br", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	storage, logFile := set.String("storage", "", ""), set.String("log-file", "", "")
	for _, name := range []string{"pd", "concurrency", "compression", "compression-level", "ratelimit", "replica-read-label",
		"log-level", "ca", "cert", "key", "filter"} {
		set.String(name, "", "")
	}
	set.Bool("checksum", false, "")
	set.Bool("send-credentials-to-tikv", true, "")
	if err := set.Parse(args[2:]); err != nil {
		return err
	}
	u, err := url.Parse(*storage)
	if err != nil || u.Path == "" {
		return errors.New("empty store is not allowed: [BR:ExternalStorage:ErrStorageInvalidConfig]invalid external storage config")
	}
	f.dir = u.Path
	fmt.Fprintf(os.Stderr, "Detail BR log in %s \n", *logFile)
	f.log, err = os.OpenFile(*logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return err
}

func (f *fake) play() int {
	switch f.Scenario {
	case NoBackup:
		return 0
	case Print:
		return f.print()
	case HugeLine:
		cause := `[unit-name="range start:? end:?"] [error="rpc error: code = Canceled desc = context canceled"] `
		fmt.Fprintln(os.Stderr, `[2021/08/10 10:00:00.000 +00:00] [INFO] [collector.go:66] ["Full backup failed summary"] [total-ranges=8533] `+
			strings.Repeat(cause, (8<<20)/len(cause)))
		return f.fail(`failed to put object: <Error><Code>AccessDenied</Code></Error>: [BR:KV:ErrKVStorage]tikv storage occur I/O error`)
	case LeaveChild:
		return f.leaveChild()
	case GCPanic:
		return f.gcPanic()
	case SilentUntil:
		return f.interrupted(<-f.signals)
	case Success, KillSelf, IgnoreTerm, EchoArgs, WrongProgram:
	}
	return f.backup()
}

func (f *fake) print() int {
	for _, line := range f.Log {
		fmt.Fprintln(f.log, line)
	}
	for _, line := range f.Stdout {
		fmt.Println(line)
	}
	for _, line := range f.Stderr {
		fmt.Fprintln(os.Stderr, line)
	}
	if f.Hang {
		return f.interrupted(<-f.signals)
	}
	return f.Exit
}

func (f *fake) leaveChild() int {
	self, err := os.Executable()
	if err != nil {
		return f.fail(err.Error())
	}
	cmd := exec.Command(self) //nolint:noctx // it is to outlive us
	cmd.Env = []string{roleEnv + "=" + holdRole}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return f.fail(err.Error())
	}
	_, _ = out.Read(make([]byte, 16)) // it ignores signals from now on
	return 0
}

func (f *fake) gcPanic() int {
	const cause = `GC safepoint 414489731860529152 exceed TS 414489628130148353: [BR:Backup:ErrBackupGCSafepointExceeded]backup GC safepoint exceeded`
	f.logf("FATAL", "safe_point.go:135", `["cannot pass gc safe point check, aborting"] [error=%q]`, cause)
	fmt.Fprint(os.Stderr, "panic: cannot pass gc safe point check, aborting\n\ngoroutine 97 [running]:\nmain.main()\n")
	return 2
}

// fail ends as br does on an error.
func (f *fake) fail(text string) int {
	f.logf("ERROR", "main.go:38", `["br failed"] [error=%q]`, text)
	fmt.Fprintln(os.Stderr, "Error: "+text)
	return 1
}

// interrupted ends as br does on a signal: the checkpoint is kept.
func (f *fake) interrupted(s os.Signal) int {
	fmt.Printf("\n========[ Got signal %v to exit. ]========\n\n", s)
	fmt.Fprintln(os.Stderr, "gracefully shutting down, press ^C again to force exit")
	f.logf("WARN", "misc.go:208", `["received signal to exit"] [signal=%v]`, s)
	f.logf("INFO", "backup.go:497", `["skip removing gc-safepoint keeper for next retry"] [gc-id=%s]`, serviceID)
	f.say(`["Full Backup failed summary"] [total-ranges=0] [ranges-succeed=0] [ranges-failed=0]`)
	return f.fail("context canceled")
}

// backup is the ordinary course.
func (f *fake) backup() int {
	if err := f.claim(); err != nil {
		return f.fail(err.Error())
	}
	f.logf("INFO", "client.go:449", `["backup encode timestamp"] [BackupTS=%d]`, f.ts)
	f.logf("INFO", "backup.go:494", `["current backup safePoint job"] [safePoint="{ID=%s,TTL=1h12m0s,BackupTime=\"2026-11-30 20:34:15 +0000 UTC\",BackupTS=%d}"]`, serviceID, f.ts)
	f.logf("INFO", "client.go:200", `["This round of backup starts..."] [round=1]`)
	f.logf("INFO", "client.go:220", `["backup ranges"] [round=1] [incomplete-ranges=%d]`, f.ranges())
	if s := f.work(); s != nil {
		return f.interrupted(s)
	}
	b := Backup{BackupTS: f.ts, ClusterID: 7, Stores: f.Stores, Files: max(f.Files, 0)}
	if err := b.Write(f.dir); err != nil {
		return f.fail(err.Error())
	}
	if err := os.RemoveAll(filepath.Join(f.dir, "checkpoints")); err != nil {
		return f.fail(err.Error())
	}
	n := f.ranges()
	f.say(`["Full Backup success summary"] [total-ranges=%d] [ranges-succeed=%d] [ranges-failed=0] [total-take=%v] [BackupTS=%d] [total-kv=%d] [total-kv-size=1kB] [Size=%d]`,
		n, n, f.Duration+time.Millisecond, f.ts, n*10, n*fileSize)
	return 0
}

func (f *fake) ranges() int { return len(f.Stores) * max(f.Files, 0) }

// claim refuses a used path, resumes from a checkpoint, or begins.
func (f *fake) claim() error {
	if _, err := os.Stat(filepath.Join(f.dir, "backupmeta")); err == nil {
		return fmt.Errorf("backup meta file exists in local://%s/backupmeta, there may be some backup files in the path already, "+
			"please specify a correct backup directory!: [BR:Common:ErrInvalidArgument]invalid argument", f.dir)
	}
	checkpoint := filepath.Join(f.dir, "checkpoints/backup/checkpoint.meta")
	if raw, err := os.ReadFile(checkpoint); err == nil {
		var cp struct {
			BackupTS policy.TS `json:"backup-ts"`
		}
		if err := json.Unmarshal(raw, &cp); err != nil {
			return err
		}
		f.ts = cp.BackupTS
		f.logf("INFO", "client.go:415", `["reuse checkpoint BackupTS"] [backup-ts=%d]`, f.ts)
		return nil
	} else if !os.IsNotExist(err) {
		return err
	}
	f.ts = policy.TSFromTime(time.Now())
	if err := os.MkdirAll(filepath.Dir(checkpoint), 0o750); err != nil {
		return err
	}
	meta := fmt.Sprintf(`{"gc-service-id":%q,"config-hash":"AAAA","backup-ts":%d,"ranges":[]}`, serviceID, f.ts)
	return errors.Join(
		os.WriteFile(filepath.Join(f.dir, "backup.lock"), []byte("DO NOT DELETE\n"), 0o600),
		os.WriteFile(checkpoint, []byte(meta), 0o600))
}

// work lets the time of the backup pass, drawing the bar when there is a
// terminal. It returns the signal that ended it early.
func (f *fake) work() os.Signal {
	const step = 20 * time.Millisecond
	bar := term.IsTerminal(int(os.Stdout.Fd()))
	begin := time.Now()
	for done := time.Duration(0); done < f.Duration || f.Scenario == IgnoreTerm; done = time.Since(begin) {
		if bar {
			fmt.Printf("\r\x1b[32mFull Backup\x1b[0m <---->...........> %.2f%%", 100*min(1, done.Seconds()/max(f.Duration.Seconds(), 1e-3)))
		}
		if f.Scenario == KillSelf && done > f.Duration/2 {
			f.logf("INFO", "backup.go:497", `["skip removing gc-safepoint keeper for next retry"] [gc-id=%s]`, serviceID)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		select {
		case s := <-f.signals:
			if f.Scenario != IgnoreTerm {
				return s
			}
		case <-time.After(step):
		}
	}
	if bar {
		fmt.Printf("\r\x1b[32mFull Backup\x1b[0m <-------------------> 100.00%%\n")
	}
	return nil
}

// logf writes a line of br's log.
func (f *fake) logf(level, caller, format string, args ...any) {
	now := time.Now().Format("2006/01/02 15:04:05.000 -07:00")
	fmt.Fprintf(f.log, "[%s] [%s] [%s] %s\n", now, level, caller, fmt.Sprintf(format, args...))
}

// say prints a line on standard output and in the log, as br does with its
// summary.
func (f *fake) say(format string, args ...any) {
	f.logf("INFO", "collector.go:78", format, args...)
	log := f.log
	f.log = os.Stdout
	f.logf("INFO", "collector.go:77", format, args...)
	f.log = log
}
