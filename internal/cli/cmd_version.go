package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/brctl/brctl/internal/version"
)

func newVersion(s streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print what this build is",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			info := version.Get()
			if output == "json" {
				return printJSON(s.out, info)
			}
			_, err := fmt.Fprintf(s.out, "brctl %s (revision %s, %s)\n", info.Version, info.Revision, info.Go)
			return err
		},
	}
	outputFlag(cmd, &output)
	return cmd
}
