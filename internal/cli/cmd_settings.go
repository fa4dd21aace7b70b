package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/brctl/brctl/internal/app"
)

func newSettings(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "settings",
		Short: "Show which TiKV settings brctl has changed and not yet put back",
		Args:  cobra.NoArgs,
	}
	var opts app.SettingsOptions
	var output string
	flags := cmd.PersistentFlags()
	flags.StringVarP(&opts.ConfigPath, "config", "c", "/etc/brctl/brctl.yaml", "configuration file; only its state directory is used, and only if --state-dir is not given")
	flags.StringVar(&opts.StateDir, "state-dir", "", "state directory; works without a valid configuration")
	flags.StringVarP(&output, "output", "o", "text", "text or json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkOutput(output); err != nil {
			return err
		}
		opts.ConfigGiven = cmd.Flags().Changed("config")
		pending, err := app.PendingSettings(opts)
		if len(pending) == 0 && err != nil {
			return err // not "no setting is changed": that is not known
		}
		return cmp.Or(err, printPending(s, output, pending))
	}
	cmd.AddCommand(newSettingsRestore(s, &opts, &output))
	return cmd
}

func newSettingsRestore(s streams, opts *app.SettingsOptions, output *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Put back every TiKV setting that brctl changed",
		Long: `Put back every TiKV setting that the journal says brctl changed, where it still
has a value of brctl's. It needs neither a valid configuration nor the database,
and refuses while a br of brctl's is alive.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(*output); err != nil {
				return err
			}
			ctx := cmd.Context()
			if ctx == nil {
				ctx = context.Background()
			}
			opts.ConfigGiven = cmd.Flags().Changed("config")
			ignoreBrokenPipes()
			opts.Warn = func(text string) { fmt.Fprintf(s.err, "warning: %s\n", text) }
			results, err := app.RestoreSettings(ctx, *opts)
			if len(results) == 0 && err != nil {
				return err
			}
			return cmp.Or(err, printRestores(s, *output, results))
		},
	}
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", app.DefaultRestoreTimeout, "how long to keep trying")
	cmd.Flags().BoolVar(&opts.Salvage, "salvage", false, "go on with what is readable of a damaged journal; a copy of it is kept")
	return cmd
}

func printPending(s streams, output string, pending []app.PendingSetting) error {
	if output == "json" {
		return printJSON(s.out, pending)
	}
	if len(pending) == 0 {
		_, err := fmt.Fprintln(s.out, "no setting is changed")
		return err
	}
	fmt.Fprintf(s.out, "%-22s %-36s %-8s %-8s %s\n", "instance", "name", "old", "ours", "run")
	for _, p := range pending {
		fmt.Fprintf(s.out, "%-22s %-36s %-8s %-8s %s\n", p.Instance, p.Name, p.Old, p.Ours, p.RunID)
	}
	return nil
}

func printRestores(s streams, output string, results []app.RestoredSetting) error {
	left := 0
	for _, r := range results {
		if r.State == app.RestorePending {
			left++
		}
	}
	if output == "json" {
		if err := printJSON(s.out, results); err != nil {
			return err
		}
	} else {
		for _, r := range results {
			fmt.Fprintf(s.out, "%-22s %-36s %s %s\n", r.Instance, r.Name, r.State, r.Message)
		}
		fmt.Fprintf(s.out, "%d settings handled, %d still changed\n", len(results), left)
	}
	if left > 0 {
		return codeError{exitFailed}
	}
	return nil
}
