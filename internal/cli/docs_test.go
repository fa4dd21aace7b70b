package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

const docsIntro = `# Command line

Generated from the commands themselves: ` + "`go test ./internal/cli -update`" + ` rewrites this page. Results go to
standard output, everything else to standard error; ` + "`-o json`" + ` is for scripts, and its keys are stable.

`

// TestTheReferenceOfTheCommandLineIsCurrent keeps docs/cli.md what --help says.
func TestTheReferenceOfTheCommandLineIsCurrent(t *testing.T) {
	root := newRoot(streams{}, new(bool))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var b strings.Builder
	b.WriteString(docsIntro)
	describe(&b, root)
	golden(t, filepath.Join("..", "..", "docs", "cli.md"), strings.TrimRight(b.String(), "\n")+"\n")
}

// describe writes a section for cmd and then for each command below it.
func describe(b *strings.Builder, cmd *cobra.Command) {
	cmd.InitDefaultHelpFlag()
	fmt.Fprintf(b, "## %s\n\n%s.\n\n```text\n", cmd.CommandPath(), strings.TrimRight(cmd.Short, "."))
	if cmd.Long != "" {
		fmt.Fprintf(b, "%s\n\n", strings.TrimSpace(cmd.Long))
	}
	fmt.Fprintf(b, "Usage: %s\n", cmd.UseLine())
	section(b, "Flags", cmd.LocalFlags().FlagUsages())
	section(b, "Flags of the commands above it", cmd.InheritedFlags().FlagUsages())
	b.WriteString("```\n\n")
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			describe(b, sub)
		}
	}
}

func section(b *strings.Builder, title, usages string) {
	if usages != "" {
		fmt.Fprintf(b, "\n%s:\n%s", title, usages)
	}
}

// What a script can break on is explained: each command says what it is for,
// each flag what it means.
func TestEveryCommandAndFlagIsExplained(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Short == "" {
			t.Errorf("%s has no description", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.LocalFlags().FlagUsages()) {
			if fields := strings.Fields(line); len(fields) < 3 {
				t.Errorf("%s: a flag without a description: %q", cmd.CommandPath(), line)
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRoot(streams{}, new(bool)))
}
