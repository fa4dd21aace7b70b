package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	api "github.com/brctl/brctl/lab/internal/adminapi"
	"github.com/brctl/brctl/lab/internal/labinfo"
)

// ctl is what the verbs share.
type ctl struct {
	dir    string
	output string
}

func newCtl() *cobra.Command {
	c := &ctl{}
	cmd := &cobra.Command{
		Use:   "ctl --dir DIR",
		Short: "Change a running lab, or ask what it saw",
	}
	cmd.PersistentFlags().StringVar(&c.dir, "dir", "", "directory of the running lab")
	cmd.PersistentFlags().StringVarP(&c.output, "output", "o", "text", "text or json")
	if err := cmd.MarkPersistentFlagRequired("dir"); err != nil {
		panic(err) // the flag is defined above
	}
	cmd.AddCommand(c.load(), c.sqlLoad(), c.events(), c.settings(), c.target(), c.addStore(), c.sql())
	cmd.AddCommand(
		c.onStore("store ID STATE", "Make a stand-in up, down, hung, slow or no-status", api.PathCondition, 2),
		c.onStore("set-config ID MODE", "Make a stand-in answer SET CONFIG with ok, refuse, not-persisted or hang", api.PathConfigMode, 2),
		c.onStore("restart-store ID", "Restart a stand-in: streams are cut, settings are read from its file", api.PathRestartStore, 1),
		c.onStore("offline-store ID", "Let PD take a store offline; it keeps its leaders", api.PathOfflineStore, 1),
		c.onStore("remove-store ID", "Move everything off a store and wait until it is a tombstone", api.PathRemoveStore, 1),
	)
	cmd.AddCommand(c.pd(), c.tidb(), c.gcSafePoint(), c.serviceSafePoint())
	return cmd
}

func (c *ctl) client() (api.Client, error) {
	info, err := labinfo.Read(c.dir)
	if err != nil {
		return api.Client{}, err
	}
	return api.Client{Address: info.AdminAddress}, nil
}

func (c *ctl) post(cmd *cobra.Command, path string, request, into any) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	return client.Post(cmd.Context(), path, request, into)
}

// print writes v as JSON if that was asked for, else with text.
func (c *ctl) print(w io.Writer, v any, text func(io.Writer)) error {
	switch c.output {
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	case "text":
		text(w)
		return nil
	default:
		return fmt.Errorf("--output: got %q, want text or json", c.output)
	}
}

// onStore is a verb about one store; with two arguments the second is what to make of it.
func (c *ctl) onStore(use, short, path string, args int) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(args),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseUint(args[0], 10, 64)
			if err != nil {
				return fmt.Errorf("parse store id: %w", err)
			}
			return c.post(cmd, path, api.Store{ID: id, State: strings.Join(args[1:], "")}, nil)
		},
	}
}

func (c *ctl) addStore() *cobra.Command {
	return &cobra.Command{
		Use: "add-store", Short: "Start one more stand-in; it holds no regions", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s labinfo.Store
			if err := c.post(cmd, api.PathAddStore, struct{}{}, &s); err != nil {
				return err
			}
			return c.print(cmd.OutOrStdout(), s, func(w io.Writer) { fmt.Fprintf(w, "store %d at %s\n", s.ID, s.Address) })
		},
	}
}

func (c *ctl) target() *cobra.Command {
	return &cobra.Command{
		Use: "target full|ok", Short: "Make every write of a backup file fail as on a full disk", Args: cobra.ExactArgs(1),
		ValidArgs: []string{"full", "ok"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] != "full" && args[0] != "ok" {
				return fmt.Errorf("target %q: want full or ok", args[0])
			}
			return c.post(cmd, api.PathTarget, api.Target{Full: args[0] == "full"}, nil)
		},
	}
}

func (c *ctl) pd() *cobra.Command {
	return &cobra.Command{
		Use: "pd kill|start|restart [MEMBER]", Short: "Act on a PD member (pd-1, ...), by default the leader; start starts all that are down",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.post(cmd, api.PathPD, api.Process{Action: args[0], Member: strings.Join(args[1:], "")}, nil)
		},
	}
}

func (c *ctl) tidb() *cobra.Command {
	return &cobra.Command{
		Use: "tidb kill|start|restart", Short: "Act on TiDB; after a start it waits until SQL answers", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.post(cmd, api.PathTiDB, api.Process{Action: args[0]}, nil)
		},
	}
}
