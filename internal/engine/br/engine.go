package br

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"time"

	"github.com/brctl/brctl/internal/proc"
	"github.com/brctl/brctl/pkg/policy"
)

// Name is the engine's name in invocations and records.
const Name = "br"

// Config is how br is run. The zero value of every field but Binary means "the
// default".
type Config struct {
	Binary  string        // path of br itself; a wrapper such as `tiup br` passes signals on badly
	Grace   time.Duration // between TERM and KILL when a context ends; 60 s
	Timeout time.Duration // for `br --version` and for each look at a target; 30 s
	// ConfirmTimeout bounds the reading back of a backup's metadata, which may be
	// hundreds of megabytes on a slow target; 15 min.
	ConfirmTimeout time.Duration
	// KeepEnv names the variables of our environment that br gets. nil means
	// DefaultKeepEnv.
	KeepEnv []string
}

// Defaults of Config. br flushes nothing for longer than a second or two after
// TERM, but its last writes may go to a slow target.
const (
	DefaultGrace          = 60 * time.Second
	DefaultTimeout        = 30 * time.Second
	DefaultConfirmTimeout = 15 * time.Minute
)

// DefaultKeepEnv returns the variables that br needs to find its files and to
// read times as its operator does.
func DefaultKeepEnv() []string {
	return []string{"HOME", "LANG", "PATH", "SSL_CERT_DIR", "SSL_CERT_FILE", "TMPDIR", "TZ"}
}

// Engine runs br. It holds no state of a run and is safe for concurrent use.
type Engine struct {
	config   Config
	redactor *redactor
	judge    *classifier
}

// New returns an engine. It does not look for the binary; Version does.
func New(c Config) *Engine {
	if c.Grace <= 0 {
		c.Grace = DefaultGrace
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.ConfirmTimeout <= 0 {
		c.ConfirmTimeout = DefaultConfirmTimeout
	}
	if c.KeepEnv == nil {
		c.KeepEnv = DefaultKeepEnv()
	}
	return &Engine{config: c, redactor: newRedactor(), judge: newClassifier()}
}

// Redact hides what looks like a secret in a text that is about to be printed
// or stored: parameters of storage URLs, credential flags, passwords in URLs.
func (e *Engine) Redact(s string) string { return e.redactor.redact(s) }

// Version asks the binary for its release, "v8.5.0". A build that was not made
// as a release names itself otherwise ("nightly-dirty").
func (e *Engine) Version(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, e.config.Timeout)
	defer cancel()
	var version string
	p, err := proc.Start(ctx, proc.Command{
		Path: e.config.Binary, Args: []string{"--version"}, Env: e.environment(nil), Grace: time.Second, Redact: e.Redact,
		OnLine: func(s proc.Stream, line []byte) {
			if v, ok := strings.CutPrefix(string(line), "Release Version:"); ok && s == proc.Stdout {
				version = strings.TrimSpace(v)
			}
		},
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("run br --version: there is no program %s: set the path of br: %w", e.config.Binary, err)
	}
	if err != nil {
		return "", fmt.Errorf("run br --version: %w", err)
	}
	res := p.Wait()
	switch {
	case ctx.Err() != nil && res.Stopped:
		return "", fmt.Errorf("run br --version: no answer within %v: %w", e.config.Timeout, context.Cause(ctx))
	case res.ExitCode != 0 || version == "":
		return "", fmt.Errorf("run br --version: %s is not br: exit %d, said %q",
			e.config.Binary, res.ExitCode, bounded(strings.Join(res.Tail, "\n")))
	}
	return version, nil
}

// Recover ends a br that an earlier life of ours started and that may still
// run: TERM to its group, KILL after grace, until it is gone for certain. It
// returns nil when there is nothing (left) to end. A deadline of ctx that comes
// before the end of grace shortens it, so that KILL is sent in any case.
func (e *Engine) Recover(ctx context.Context, ref policy.ChildRef, grace time.Duration) error {
	if err := proc.Terminate(ctx, procRef(ref), grace); err != nil {
		return fmt.Errorf("end br of an earlier run: %w", err)
	}
	return nil
}

// Left looks for what is left of a br that this or an earlier life started. nil
// means that neither br nor anything it started runs, so its settings may be put
// back. Else the error wraps a *proc.LeftError, which lists the process ids and
// wraps proc.ErrAlive while br itself lives, proc.ErrOrphans when only others of
// its group do; any other error means that the answer is not known.
func (e *Engine) Left(ref policy.ChildRef) error {
	if err := proc.Left(procRef(ref)); err != nil {
		return fmt.Errorf("look for br of an earlier run: %w", err)
	}
	return nil
}

// Alive reports whether the br of an earlier life still runs. It asks for br
// alone; see Left.
func (e *Engine) Alive(ref policy.ChildRef) bool { return proc.Alive(procRef(ref)) }

func procRef(r policy.ChildRef) proc.Ref {
	return proc.Ref{PID: r.PID, StartTicks: r.StartTicks, BootID: r.BootID}
}

func childRef(r proc.Ref) policy.ChildRef {
	return policy.ChildRef{PID: r.PID, StartTicks: r.StartTicks, BootID: r.BootID}
}

// environment is what br gets: the kept variables of ours, then extra. Of
// BR_LOG_TO_TERM the mere presence, even empty, moves br's log to its standard
// output, so it is never passed on.
func (e *Engine) environment(extra []string) []string {
	var env []string
	for _, kv := range append(proc.CleanEnv(e.config.KeepEnv), extra...) {
		if !strings.HasPrefix(kv, "BR_LOG_TO_TERM=") {
			env = append(env, kv)
		}
	}
	return env
}
