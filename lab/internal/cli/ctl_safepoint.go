package cli

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	api "github.com/brctl/brctl/lab/internal/adminapi"
)

func (c *ctl) gcSafePoint() *cobra.Command {
	return &cobra.Command{
		Use: "gc-safepoint TS|now", Short: "Move PD's GC safepoint forward", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ts, err := parseTS(args[0])
			if err != nil {
				return err
			}
			return c.safePoint(cmd, api.PathGCSafePoint, api.SafePoint{SafePoint: ts})
		},
	}
}

func (c *ctl) serviceSafePoint() *cobra.Command {
	return &cobra.Command{
		Use: "service-safepoint ID TTL TS|now", Short: "Add a service safepoint for TTL seconds; a TTL of 0 removes it", Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			ttl, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil {
				return fmt.Errorf("parse TTL: %w", err)
			}
			ts, err := parseTS(args[2])
			if err != nil {
				return err
			}
			return c.safePoint(cmd, api.PathServiceSafePoint, api.SafePoint{ServiceID: args[0], TTL: ttl, SafePoint: ts})
		},
	}
}

func (c *ctl) safePoint(cmd *cobra.Command, path string, request api.SafePoint) error {
	var answer api.SafePoint
	if err := c.post(cmd, path, request, &answer); err != nil {
		return err
	}
	return c.print(cmd.OutOrStdout(), answer, func(w io.Writer) { fmt.Fprintln(w, answer.SafePoint) })
}

// parseTS reads a timestamp; "now" is 0, which the lab replaces by PD's time.
func parseTS(s string) (uint64, error) {
	if s == "now" {
		return 0, nil
	}
	ts, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("parse TS: %w", err)
	}
	return ts, nil
}
