package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/brctl/brctl/internal/app"
	"github.com/brctl/brctl/pkg/policy"
)

// planFlags are the flags of plan as they are typed; an absent one leaves the
// schedule's value, or the default, alone.
type planFlags struct {
	config, output string

	size, version        string
	hosts, tikvPerHost   int
	vcores               float64
	replicas, tables     int
	medium, baseLoad     string
	mode, goal           string
	control              bool
	maxHostCPU, maxQPS   string
	maxP95               string
	maxDuration, maxGC   time.Duration
	storageRate, netRate float64
	rate                 float64
	threads, concurrency int
	compression          string
	level                int
	checksum, unusual    bool
}

func newPlan(s streams) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan [SCHEDULE]",
		Short: "Say how a backup would run, and what it would do to the business; changes nothing",
		Long: `With a SCHEDULE, plan from the live cluster of the configuration. With --size,
plan for a cluster described by hand.

  brctl plan -c /etc/brctl/brctl.yaml nightly
  brctl plan --size 10TiB --hosts 3 --tikv-per-host 4 --vcores 48 --base-load 65%

Sizes are IEC (1 TiB = 1024 GiB) over all replicas, as PD shows them. Rates are
MB/s of 1 MB = 1024·1024 bytes.`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runPlan(cmd, s, &f, args) }
	configFlag(cmd, &f.config)
	outputFlag(cmd, &f.output)
	f.addShape(cmd)
	f.addWishes(cmd)
	return cmd
}

// shapeGiven returns the first flag that describes a cluster by hand and was
// given, or "".
func shapeGiven(cmd *cobra.Command) string {
	for _, name := range []string{"hosts", "tikv-per-host", "vcores", "replicas", "tables", "cluster-version"} {
		if cmd.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

func (f *planFlags) addShape(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.size, "size", "", "used size over all replicas, such as 10TiB; plans without a cluster")
	fl.IntVar(&f.hosts, "hosts", 3, "hosts with TiKV")
	fl.IntVar(&f.tikvPerHost, "tikv-per-host", 1, "TiKV instances on each host")
	fl.Float64Var(&f.vcores, "vcores", 16, "CPU cores of a host")
	fl.IntVar(&f.replicas, "replicas", 3, "replicas of each region")
	fl.IntVar(&f.tables, "tables", 0, "number of tables; 0 = unknown")
	fl.StringVar(&f.version, "cluster-version", "", "version of the cluster, such as v8.5.0")
}

func (f *planFlags) addWishes(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.medium, "medium", "", "what the backup is written to: nas, s3, nvme")
	fl.StringVar(&f.baseLoad, "base-load", "", "share of a host that business uses, such as 65%")
	fl.StringVar(&f.mode, "mode", "", "tiered or optimize")
	fl.StringVar(&f.goal, "goal", "", "impact, speed, space or balanced")
	fl.BoolVar(&f.control, "control", false, "plan for impact control: a cut of threads has to bite soon")
	fl.StringVar(&f.maxHostCPU, "max-host-cpu", "", "limit of a host's CPU, business and backup together, such as 80%")
	fl.DurationVar(&f.maxDuration, "max-duration", 0, "limit of the duration")
	fl.DurationVar(&f.maxGC, "max-gc-hold", 0, "limit of how long GC stands still")
	fl.StringVar(&f.maxQPS, "max-qps-drop", "", "limit of the drop of QPS, such as 20%")
	fl.StringVar(&f.maxP95, "max-p95-rise", "", "limit of the rise of p95, such as 30%")
	fl.Float64Var(&f.storageRate, "max-storage-mb-per-s", 0, "what the storage can take")
	fl.Float64Var(&f.netRate, "max-network-mb-per-s", 0, "what a host's network can take")
	fl.Float64Var(&f.rate, "mb-per-s-per-thread", 0, "k of the model; 0 = the measured prior")
	fl.IntVar(&f.threads, "threads", 0, "backup.num-threads given by hand")
	fl.IntVar(&f.concurrency, "concurrency", 0, "br --concurrency given by hand")
	fl.StringVar(&f.compression, "compression", "", "lz4, snappy or zstd, given by hand")
	fl.IntVar(&f.level, "compression-level", 0, "level of zstd, given by hand")
	fl.BoolVar(&f.checksum, "checksum", false, "have br compare checksums")
	fl.BoolVar(&f.unusual, "allow-unusual", false, "accept more than 8 threads, and a concurrency outside 4..256")
}

func runPlan(cmd *cobra.Command, s streams, f *planFlags, args []string) error {
	if err := checkOutput(f.output); err != nil {
		return err
	}
	offline := f.size != ""
	switch {
	case offline == (len(args) == 1):
		return usageError{"plan wants either a SCHEDULE or --size"}
	case !offline:
		if name := shapeGiven(cmd); name != "" {
			return usageError{fmt.Sprintf("--%s describes a cluster by hand: it goes with --size, not with a SCHEDULE", name)}
		}
	case cmd.Flags().Changed("config"):
		return usageError{"--config goes with a SCHEDULE, not with --size: a cluster described by hand is planned without a configuration"}
	}
	wishes, err := f.wishes(cmd)
	if err != nil {
		return err
	}
	report, err := f.report(cmd.Context(), args, wishes)
	if err != nil {
		return err
	}
	if f.output == "json" {
		return printJSON(s.out, report.PlanView)
	}
	return printPlan(s.out, report)
}

func (f *planFlags) report(ctx context.Context, args []string, wishes func(*policy.Options)) (app.PlanReport, error) {
	if len(args) == 1 {
		if ctx == nil {
			ctx = context.Background()
		}
		return app.PlanLive(ctx, f.config, args[0], wishes)
	}
	size, err := policy.ParseBytes(f.size)
	if err != nil {
		return app.PlanReport{}, usageError{"--size: " + err.Error()}
	}
	if f.replicas < 1 {
		return app.PlanReport{}, usageError{fmt.Sprintf("--replicas: got %d, want at least 1", f.replicas)}
	}
	if size < policy.GiB {
		return app.PlanReport{}, usageError{fmt.Sprintf("--size: %s is no cluster; write a unit, such as 10TiB", policy.FormatBytes(size))}
	}
	return app.PlanOffline(policy.OfflineSpec{
		Bytes: size, Hosts: f.hosts, TiKVPerHost: f.tikvPerHost, VCores: f.vcores,
		Replicas: f.replicas, Tables: f.tables, Version: f.version,
	}, wishes)
}

// wishes returns what the given flags change in the planner's options.
func (f *planFlags) wishes(cmd *cobra.Command) (func(*policy.Options), error) {
	ratios := map[string]float64{}
	for name, text := range map[string]string{
		"base-load": f.baseLoad, "max-host-cpu": f.maxHostCPU, "max-qps-drop": f.maxQPS, "max-p95-rise": f.maxP95,
	} {
		if !cmd.Flags().Changed(name) {
			continue
		}
		v, err := parseShare(text)
		if err != nil {
			return nil, usageError{fmt.Sprintf("--%s: %s", name, err)}
		}
		ratios[name] = v
	}
	given := cmd.Flags().Changed
	return func(o *policy.Options) {
		f.applyLimits(o, given, ratios)
		f.applyChoices(o, given)
	}, nil
}

func (f *planFlags) applyLimits(o *policy.Options, given func(string) bool, ratios map[string]float64) {
	set(&o.Limits.MaxHostCPU, ratios["max-host-cpu"], given("max-host-cpu"))
	set(&o.Limits.MaxQPSDrop, ratios["max-qps-drop"], given("max-qps-drop"))
	set(&o.Limits.MaxP95Rise, ratios["max-p95-rise"], given("max-p95-rise"))
	set(&o.Limits.MaxDuration, f.maxDuration, given("max-duration"))
	set(&o.Limits.MaxGCHold, f.maxGC, given("max-gc-hold"))
	set(&o.Limits.StorageMBPerS, f.storageRate, given("max-storage-mb-per-s"))
	set(&o.Limits.NetworkMBPerS, f.netRate, given("max-network-mb-per-s"))
	if given("base-load") {
		v := ratios["base-load"]
		o.BaseLoad = &v
	}
}

func (f *planFlags) applyChoices(o *policy.Options, given func(string) bool) {
	set(&o.Mode, policy.Mode(f.mode), given("mode"))
	set(&o.Goal, policy.Goal(f.goal), given("goal"))
	set(&o.Medium, policy.Medium(f.medium), given("medium"))
	set(&o.Control, f.control, given("control"))
	set(&o.AllowUnusual, f.unusual, given("allow-unusual"))
	set(&o.RatePerThread, f.rate, given("mb-per-s-per-thread"))
	set(&o.RateSource, "given", given("mb-per-s-per-thread"))
	set(&o.NumThreads, &f.threads, given("threads"))
	set(&o.Concurrency, &f.concurrency, given("concurrency"))
	set(&o.Compression, &f.compression, given("compression"))
	set(&o.CompressionLevel, &f.level, given("compression-level"))
	set(&o.Checksum, &f.checksum, given("checksum"))
}

func set[T any](target *T, value T, given bool) {
	if given {
		*target = value
	}
}

// parseShare reads "65%" and 0.65, and a bare 65 as the per cent that it can
// only mean on a command line.
func parseShare(text string) (float64, error) {
	v, err := policy.ParseRatio(text)
	if err == nil {
		return v, nil
	}
	if v, errPercent := policy.ParseRatio(text + "%"); errPercent == nil {
		return v, nil
	}
	return 0, err
}
