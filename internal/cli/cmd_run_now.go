package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/brctl/brctl/internal/app"
	"github.com/brctl/brctl/pkg/policy"
)

func newRunNow(s streams) *cobra.Command {
	var opts app.RunNowOptions
	var output string
	cmd := &cobra.Command{
		Use:   "run-now SCHEDULE",
		Short: "Run one backup of a schedule now, in the foreground",
		Long: `Plan a full backup from the live cluster, set TiKV's backup settings through
SQL, run br, check the result and put every setting back.

Ctrl-C stops br gracefully and then restores the settings; a second Ctrl-C does
not skip the restore.
` + exitHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			if opts.NumThreads < 0 {
				return usageError{fmt.Sprintf("--threads: got %d, want 1 or more, or 0 for as planned", opts.NumThreads)}
			}
			opts.Schedule = args[0]
			return runNow(cmd.Context(), s, opts, output)
		},
	}
	configFlag(cmd, &opts.ConfigPath)
	outputFlag(cmd, &output)
	cmd.Flags().BoolVar(&opts.NoLease, "no-lease", false, "do not take the cluster's lease in PD's etcd (nothing then keeps another host from starting a backup)")
	cmd.Flags().IntVar(&opts.NumThreads, "threads", 0, "backup.num-threads for this run only; 0 = as planned")
	return cmd
}

func runNow(ctx context.Context, s streams, opts app.RunNowOptions, output string) error {
	show := newMailbox(newDisplay(s))
	ctx, release := stopOnSignal(ctx, show.warn)
	defer release()
	opts.Observe = show.update
	opts.Warn = show.warn
	result, err := app.RunNow(ctx, opts)
	show.close()
	if result.RunID == "" {
		return err
	}
	write := printResult
	if output == "json" {
		write = func(w io.Writer, r app.Result) error { return printJSON(w, r) }
	}
	if err := errors.Join(err, write(s.out, result)); err != nil {
		return err
	}
	if code := runCode(result); code != exitOK {
		return codeError{code}
	}
	return nil
}

// stopOnSignal cancels the context at the first signal, as an operator's wish,
// and says at further ones why it is not over yet.
func stopOnSignal(ctx context.Context, say func(string)) (context.Context, func()) {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	ignoreBrokenPipes()
	done := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case sig := <-signals:
				cancel(app.ErrStoppedByOperator)
				if n == 0 {
					say(fmt.Sprintf("%s: stopping br, then putting settings back", sig))
				} else {
					say("settings are still being put back; please wait")
				}
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		<-finished
		cancel(nil)
	}
}

// ignoreBrokenPipes keeps a reader that has gone from ending this process: Ctrl-C
// ends a pipe's reader as well, and unless SIGPIPE is asked for, the next line
// that is printed would be the last before settings are restored.
func ignoreBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// runCode turns a result into an exit code.
func runCode(r app.Result) int {
	switch r.Status {
	case policy.RunSucceeded:
		if len(r.Unrestored()) > 0 {
			return exitWarnings
		}
		return exitOK
	case policy.RunAborted:
		return exitAborted
	case policy.RunCancelled:
		return exitCancelled
	case policy.RunSkipped, policy.RunMissed:
		return exitDeferred
	default:
		return failureCode(r.Reason)
	}
}

func failureCode(reason policy.RunReason) int {
	switch reason {
	case policy.ReasonUnavailable:
		return exitUnavailable
	case policy.ReasonPrivilege, policy.ReasonCredentials:
		return exitNoPerm
	default:
		return exitFailed
	}
}

func printResult(w io.Writer, r app.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "run        %s\n", r.RunID)
	fmt.Fprintf(&b, "status     %s", r.Status)
	if r.Reason != "" {
		fmt.Fprintf(&b, " (%s)", r.Reason)
	}
	b.WriteByte('\n')
	if r.Message != "" {
		fmt.Fprintf(&b, "message    %s\n", r.Message)
	}
	if r.StorageURL != "" {
		fmt.Fprintf(&b, "storage    %s\n", r.StorageURL)
	}
	if r.BackupTS != 0 {
		fmt.Fprintf(&b, "backup_ts  %s (%s)\n", r.BackupTS, r.BackupTS.Time().Format("2006-01-02T15:04:05Z07:00"))
	}
	if r.SizeBytes > 0 {
		fmt.Fprintf(&b, "size       %s\n", policy.FormatBytes(r.SizeBytes))
	}
	if r.DurationSeconds > 0 {
		fmt.Fprintf(&b, "duration   %s (forecast %s)\n", seconds(r.DurationSeconds), seconds(r.ForecastDurationSeconds))
	}
	if r.BR.LogFile != "" {
		fmt.Fprintf(&b, "br log     %s\n", r.BR.LogFile)
	}
	printSettings(&b, r.Settings)
	for _, warning := range r.Warnings {
		fmt.Fprintf(&b, "warning    %s\n", warning)
	}
	_, err := w.Write([]byte(b.String()))
	return err
}

func printSettings(b *strings.Builder, settings []app.SettingView) {
	if len(settings) == 0 {
		return
	}
	b.WriteString("settings   instance               name                                 before  during  after\n")
	for i, c := range settings {
		if i >= shownSettings && c.Restored != app.RestorePending {
			continue
		}
		fmt.Fprintf(b, "           %-22s %-36s %-7s %-7s %s\n", c.Instance, c.Name, c.Old, c.Set, afterText(c))
	}
	if more := len(settings) - shownSettings; more > 0 {
		fmt.Fprintf(b, "           … %d in all (-o json has every one)\n", len(settings))
	}
}

// shownSettings is how many settings are printed; those that are not restored
// always are.
const shownSettings = 24

func afterText(c app.SettingView) string {
	switch c.Restored {
	case app.Restored, app.RestoreUntouched:
		return c.Old
	case app.RestorePending:
		return c.Set + " (NOT restored: " + c.Message + ")"
	default:
		if c.Message == "" {
			return string(c.Restored)
		}
		return fmt.Sprintf("%s (%s)", c.Restored, c.Message)
	}
}
