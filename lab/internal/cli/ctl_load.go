package cli

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "github.com/brctl/brctl/lab/internal/adminapi"
	"github.com/brctl/brctl/lab/internal/bed"
	"github.com/brctl/brctl/lab/internal/labinfo"
	"github.com/brctl/brctl/lab/internal/sqlload"
	"github.com/brctl/brctl/lab/internal/standin"
)

func (c *ctl) load() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "load HOST [VALUE]",
		Short: "Set the business load of a host (an address, or all), or replay one",
		Long:  "Set the business load of a host, a share of its CPU, or replay a CSV file of seconds,value lines in real time.",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			points, err := loadPoints(args[1:], file)
			if err != nil {
				return err
			}
			return c.post(cmd, api.PathLoad, api.Load{Host: args[0], Points: points}, nil)
		},
	}
	cmd.Flags().StringVar(&file, "csv", "", "file of seconds,value lines")
	return cmd
}

func loadPoints(args []string, file string) ([]standin.Point, error) {
	switch {
	case len(args) == 1 && file == "":
		v, err := strconv.ParseFloat(args[0], 64)
		if err != nil {
			return nil, fmt.Errorf("parse load: %w", err)
		}
		return []standin.Point{{Value: v}}, nil
	case len(args) == 0 && file != "":
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("open load: %w", err)
		}
		defer f.Close()
		return readPoints(f)
	default:
		return nil, errors.New("want either VALUE or --csv FILE")
	}
}

// readPoints reads seconds,value lines; a first line that is no number is a heading.
func readPoints(r io.Reader) ([]standin.Point, error) {
	records := csv.NewReader(r)
	records.FieldsPerRecord, records.Comment, records.TrimLeadingSpace = 2, '#', true
	rows, err := records.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read load: %w", err)
	}
	var points []standin.Point
	for i, row := range rows {
		seconds, err1 := strconv.ParseFloat(strings.TrimSpace(row[0]), 64)
		value, err2 := strconv.ParseFloat(strings.TrimSpace(row[1]), 64)
		if err := errors.Join(err1, err2); err != nil {
			if i == 0 {
				continue
			}
			return nil, fmt.Errorf("read load: %w", err)
		}
		points = append(points, standin.Point{Seconds: seconds, Value: value})
	}
	return points, nil
}

func (c *ctl) sqlLoad() *cobra.Command {
	var o sqlload.Options
	cmd := &cobra.Command{
		Use: "sql-load", Short: "Read random rows through TiDB and report rate and latency", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info, err := labinfo.Read(c.dir)
			if err != nil {
				return err
			}
			db, err := bed.OpenSQL(info.SQLAddress, "lab")
			if err != nil {
				return err
			}
			defer db.Close()
			if o.Threads <= 0 || o.Duration <= 0 {
				return errors.New("sql-load: want more than zero for --threads and --duration")
			}
			o.Tables, o.Rows = info.Shape.Tables, info.Shape.Rows
			report, err := sqlload.Run(cmd.Context(), db, o)
			if err != nil {
				return err
			}
			return c.print(cmd.OutOrStdout(), report, func(w io.Writer) {
				fmt.Fprintf(w, "%.0f queries/s, %d errors, mean %.2f ms, p50 %.2f ms, p95 %.2f ms, p99 %.2f ms\n",
					report.QPS, report.Errors, report.MeanMS, report.P50MS, report.P95MS, report.P99MS)
			})
		},
	}
	cmd.Flags().DurationVar(&o.Duration, "duration", 10*time.Second, "how long")
	cmd.Flags().IntVar(&o.Threads, "threads", 4, "clients that each send one query after another")
	return cmd
}
