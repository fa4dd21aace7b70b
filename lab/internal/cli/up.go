package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pingcap/log"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/brctl/brctl/lab/internal/bed"
	"github.com/brctl/brctl/lab/internal/labinfo"
	"github.com/brctl/brctl/lab/internal/shape"
)

// fixed are the flags that a directory's data depends on.
var fixed = []string{"hosts", "tikv-per-host", "replicas", "tables", "rows", "pd"}

func newUp() *cobra.Command {
	var dir string
	sh := shape.Default()
	cmd := &cobra.Command{
		Use:   "up --dir DIR",
		Short: "Run a lab in the foreground until it is interrupted",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			abs, err := filepath.Abs(dir)
			if err != nil {
				return fmt.Errorf("find lab directory: %w", err)
			}
			if err := remember(abs, &sh, cmd.Flags()); err != nil {
				return err
			}
			bin, err := binDir()
			if err != nil {
				return err
			}
			if err := quietLibraries(abs); err != nil {
				return err
			}
			return bed.Run(cmd.Context(), bed.Options{Dir: abs, Bin: bin, Shape: sh, Say: say})
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "directory of the lab; its data can be started again")
	addShape(cmd.Flags(), &sh)
	if err := cmd.MarkFlagRequired("dir"); err != nil {
		panic(err) // the flag is defined two lines above
	}
	return cmd
}

func addShape(f *pflag.FlagSet, sh *shape.Shape) {
	f.IntVar(&sh.Hosts, "hosts", sh.Hosts, "loopback hosts: 127.0.0.1, 127.0.0.2, ...")
	f.IntVar(&sh.TiKVPerHost, "tikv-per-host", sh.TiKVPerHost, "TiKV stand-ins on each host")
	f.IntVar(&sh.Cores, "cores", sh.Cores, "cores of each host")
	f.BoolVar(&sh.Bound, "bound", sh.Bound, "bind each TiKV to its part of the host's cores instead of all")
	f.Var(&sh.Size, "size", "virtual data over all replicas, as PD sees it")
	f.IntVar(&sh.Replicas, "replicas", sh.Replicas, "replicas of each region, at most one on each TiKV")
	f.Var(&sh.RegionSize, "region-size", "virtual size of a region")
	f.IntVar(&sh.Tables, "tables", sh.Tables, "real tables in database lab")
	f.IntVar(&sh.Rows, "rows", sh.Rows, "real rows in each table")
	f.Float64Var(&sh.MBpsPerThread, "mbps-per-thread", sh.MBpsPerThread, "what one backup thread processes, MiB per second")
	f.DurationVar(&sh.RefreshInterval, "refresh-interval", sh.RefreshInterval, "default of backup.auto-tune-refresh-interval")
	f.IntVar(&sh.BatchSize, "batch-size", sh.BatchSize, "default of backup.batch-size")
	f.Float64SliceVar(&sh.Load, "load", sh.Load, "business load as a share of a host's CPU; one value or one per host")
	f.IntVar(&sh.PD, "pd", sh.PD, "PD members")
	f.StringVar(&sh.TiKVVersion, "tikv-version", sh.TiKVVersion, "version that the stand-ins report and whose thread pool they follow")
	f.BoolVar(&sh.S3, "s3", sh.S3, "run an S3 server with an empty bucket")
	f.Var(&sh.MetricsSize, "metrics-size", "size to which a metrics page is filled up")
	f.DurationVar(&sh.ThreadListInterval, "thread-list-interval", sh.ThreadListInterval,
		"how long a new thread can stay off the metrics page (TiKV: 15s to 10m)")
	f.DurationVar(&sh.KVDelay, "kv-delay", sh.KVDelay, "time of a KV request on an idle host")
}

// remember merges the flags with the shape of the directory's first start. What its data depends on cannot change;
// everything else can, and keeps its former value when not given.
func remember(dir string, sh *shape.Shape, flags *pflag.FlagSet) error {
	file := filepath.Join(dir, "shape.json")
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read shape of the lab: %w", err)
	}
	if err == nil {
		former := shape.Default()
		if err := json.Unmarshal(data, &former); err != nil {
			return fmt.Errorf("parse %s: %w", file, err)
		}
		if err := merge(former, sh, flags); err != nil {
			return err
		}
	}
	if err := sh.Validate(); err != nil {
		return err
	}
	if data, err = json.MarshalIndent(sh, "", "  "); err != nil {
		return fmt.Errorf("encode shape of the lab: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make lab directory: %w", err)
	}
	return labinfo.WriteFile(file, data)
}

func merge(former shape.Shape, sh *shape.Shape, flags *pflag.FlagSet) error {
	known := pflag.NewFlagSet("former", pflag.ContinueOnError)
	addShape(known, &former)
	var errs []error
	for _, name := range fixed {
		f := flags.Lookup(name)
		if was := known.Lookup(name).Value.String(); f.Changed && f.Value.String() != was {
			errs = append(errs, fmt.Errorf("--%s: this directory was made with %s, got %s; use another directory", name, was, f.Value))
		}
	}
	flags.Visit(func(f *pflag.Flag) {
		if k := known.Lookup(f.Name); k != nil {
			errs = append(errs, overwrite(k, f))
		}
	})
	*sh = former
	return errors.Join(errs...)
}

func overwrite(into, from *pflag.Flag) error {
	if list, ok := into.Value.(pflag.SliceValue); ok {
		return list.Replace(from.Value.(pflag.SliceValue).GetSlice())
	}
	return into.Value.Set(from.Value.String())
}

// binDir is where this program lies; the Makefile puts the others next to it.
func binDir() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find own path: %w", err)
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", fmt.Errorf("find own path: %w", err)
	}
	return filepath.Dir(self), nil
}

// quietLibraries sends the log of TiDB's and PD's client libraries, which log globally, to a file.
func quietLibraries(dir string) error {
	logger, props, err := log.InitLogger(&log.Config{
		Level: "info", File: log.FileLogConfig{Filename: filepath.Join(dir, "log", "stand-in.log")},
	})
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	log.ReplaceGlobals(logger, props)
	return nil
}

func say(format string, args ...any) {
	fmt.Printf("%s lab: %s\n", time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}
