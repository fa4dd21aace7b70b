package cli

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/brctl/brctl/lab/internal/bed"
	"github.com/brctl/brctl/lab/internal/labinfo"
)

func (c *ctl) sql() *cobra.Command {
	return &cobra.Command{
		Use: "sql STATEMENT...", Short: "Run statements in one session as root; rows and warnings are printed with tabs", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			info, err := labinfo.Read(c.dir)
			if err != nil {
				return err
			}
			db, err := bed.OpenSQL(info.SQLAddress, "lab")
			if err != nil {
				return err
			}
			defer db.Close()
			conn, err := db.Conn(cmd.Context())
			if err != nil {
				return fmt.Errorf("connect: %w", err)
			}
			defer conn.Close()
			for _, statement := range args {
				for _, s := range []string{statement, "SHOW WARNINGS"} {
					if err := query(cmd.Context(), conn, s, cmd.OutOrStdout()); err != nil {
						return fmt.Errorf("run %q: %w", s, err)
					}
				}
			}
			return nil
		},
	}
}

func query(ctx context.Context, conn *sql.Conn, statement string, w io.Writer) error {
	rows, err := conn.QueryContext(ctx, statement)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		line := make([]string, len(values))
		for i, v := range values {
			line[i] = v.String
		}
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	return rows.Err()
}
