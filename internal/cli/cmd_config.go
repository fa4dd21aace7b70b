package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/brctl/brctl/internal/app"
)

func newConfig(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check the configuration",
		Args:  cobra.NoArgs, // a misspelt subcommand is an error, which cobra alone would answer with help
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var path string
	validate := &cobra.Command{
		Use:   "validate",
		Short: "Report every problem of the configuration, with file, line and column",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := app.LoadConfig(path)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.out, "%s is valid: %d clusters, %d schedules\n", path, len(cfg.Clusters), len(cfg.Schedules))
			return err
		},
	}
	configFlag(validate, &path)
	cmd.AddCommand(validate)
	return cmd
}
