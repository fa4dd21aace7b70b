package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	api "github.com/brctl/brctl/lab/internal/adminapi"
	"github.com/brctl/brctl/lab/internal/events"
)

func (c *ctl) events() *cobra.Command {
	return &cobra.Command{
		Use: "events", Short: "List what the stand-ins saw since the lab started", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.client()
			if err != nil {
				return err
			}
			list := []events.Event{}
			if err := client.Get(cmd.Context(), api.PathEvents, &list); err != nil {
				return err
			}
			return c.print(cmd.OutOrStdout(), list, func(w io.Writer) {
				for _, e := range list {
					fmt.Fprintf(w, "%s store %d %s\n", e.Time.Format("15:04:05.000"), e.StoreID, describe(e))
				}
			})
		},
	}
}

func describe(e events.Event) string {
	switch {
	case e.Config != nil && e.Refusal != "":
		return fmt.Sprintf("refused %s = %v: %s", e.Item, e.Value, e.Refusal)
	case e.Config != nil:
		return fmt.Sprintf("set %s = %v (in force: %v, persisted: %t)", e.Item, e.Value, e.Effective, e.Persisted)
	case e.Stream != nil:
		return fmt.Sprintf("%s %d: %d ranges, %d virtual regions, %s, %d open streams, %d threads, answered %d %s",
			strings.ReplaceAll(e.Kind, "_", " "), e.StreamID, e.SubRanges, e.Regions, e.Compression, e.OpenStreams,
			e.NumThreads, e.Answered, e.Outcome)
	default:
		return e.State
	}
}

func (c *ctl) settings() *cobra.Command {
	return &cobra.Command{
		Use: "settings", Short: "Show the settings in force at every stand-in", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.client()
			if err != nil {
				return err
			}
			list := []api.Settings{}
			if err := client.Get(cmd.Context(), api.PathSettings, &list); err != nil {
				return err
			}
			return c.print(cmd.OutOrStdout(), list, func(w io.Writer) {
				for _, s := range list {
					for _, item := range slices.Sorted(maps.Keys(s.Values)) {
						fmt.Fprintf(w, "%d %s %s = %v\n", s.StoreID, s.Instance, item, s.Values[item])
					}
				}
			})
		},
	}
}
