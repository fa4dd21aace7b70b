// Package cli is brctl's command line: one file per command, from flags to
// options to a call of internal/app, and the table of exit codes. Results go to
// standard output, everything else to standard error.
package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/brctl/brctl/internal/app"
)

// The exit codes. They follow sysexits where one fits, so that systemd names
// them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitAborted     = 3
	exitCancelled   = 4
	exitWarnings    = 5
	exitUsage       = 64
	exitNoInput     = 66
	exitUnavailable = 69
	exitDeferred    = 75
	exitNoPerm      = 77
	exitConfig      = 78
)

const exitHelp = `
Exit codes:
   0  done as asked
   1  the run failed
   3  aborted by the impact guard
   4  cancelled by a person
   5  finished, with warnings that need a look (settings not yet restored)
  64  bad flags or arguments
  66  no such schedule, run or backup
  69  PD, TiDB or the daemon is unreachable
  75  skipped or deferred by policy; try again later
  77  not allowed
  78  bad configuration`

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// codeError carries an exit code that a command has already explained.
type codeError struct{ code int }

func (e codeError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// Main runs one command and returns its exit code.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	s := streams{in: in, out: out, err: errOut}
	began := false
	root := newRoot(s, &began)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	cmd, err := root.ExecuteC()
	var code codeError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return code.code
	case !began, isUsage(err):
		fmt.Fprintf(errOut, "brctl: %s\nSee '%s --help'.\n", indent(err.Error()), cmd.CommandPath())
		return exitUsage
	}
	return explain(errOut, err)
}

// isUsage reports whether the arguments are to blame: not what they name, but
// what they say.
func isUsage(err error) bool {
	var usage usageError
	var e *app.Error
	return errors.As(err, &usage) || errors.As(err, &e) && e.Kind == app.KindUsage
}

// explain prints err once, with its hint, and returns its exit code.
func explain(w io.Writer, err error) int {
	var e *app.Error
	if !errors.As(err, &e) {
		fmt.Fprintf(w, "brctl: %s\n", err)
		return exitFailed
	}
	fmt.Fprintf(w, "brctl: %s\n", indent(err.Error()))
	if e.Hint != "" {
		fmt.Fprintf(w, "hint: %s\n", e.Hint)
	}
	switch e.Kind {
	case app.KindConfig:
		return exitConfig
	case app.KindNotFound:
		return exitNoInput
	case app.KindUnavailable:
		return exitUnavailable
	case app.KindDeferred:
		return exitDeferred
	case app.KindPermission:
		return exitNoPerm
	default:
		return exitFailed
	}
}

// indent keeps the lines of a joined error apart from what follows.
func indent(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }

// usageError is a mistake in the arguments that only the command itself can
// see.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func newRoot(s streams, began *bool) *cobra.Command {
	root := &cobra.Command{
		Use:   "brctl",
		Short: "Backups of TiDB clusters that respect the business beside them",
		Long: "brctl plans, runs and checks backups of self-managed TiDB clusters with br.\n" +
			"It is not the Linux bridge tool of the same name.\n" + exitHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(*cobra.Command, []string) {
			*began = true
		},
	}
	root.AddCommand(
		newRunNow(s), newPlan(s), newSettings(s), newConfig(s), newVersion(s),
	)
	return root
}

// configFlag adds -c to a command that needs a configuration.
func configFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVarP(path, "config", "c", "/etc/brctl/brctl.yaml", "configuration file")
}

// outputFlag adds -o.
func outputFlag(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVarP(format, "output", "o", "text", "text or json")
}

func checkOutput(format string) error {
	if format != "text" && format != "json" {
		return usageError{fmt.Sprintf("--output: got %q, want text or json", format)}
	}
	return nil
}
