package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/brctl/brctl/internal/app"
	"github.com/brctl/brctl/pkg/policy"
)

// shownSQL is how many statements are printed; a cluster of a thousand TiKVs
// has a thousand that differ in the instance only. JSON has them all.
const shownSQL = 8

func printPlan(w io.Writer, r app.PlanReport) error {
	var b strings.Builder
	b.WriteString("NOTICE: plan only, nothing is started or changed\n\n")
	printChoices(&b, r.PlanView)
	printForecast(&b, r.PlanView)
	b.WriteString("\nWhy\n")
	for _, reason := range r.Reasons {
		fmt.Fprintf(&b, "  %-20s %s\n", reason.Item, reason.Text)
	}
	printList(&b, "Warnings", r.Warnings)
	printAlternatives(&b, r.Alternatives)
	printList(&b, "SQL to be sent", shorten(r.SQL))
	fmt.Fprintf(&b, "\nCommand\n  %s\n", r.Command)
	_, err := io.WriteString(w, b.String())
	return err
}

func printChoices(b *strings.Builder, p app.PlanView) {
	fmt.Fprintf(b, "Plan (%s, tier %s, goal %s)\n", p.Mode, p.Tier, p.Goal)
	row := func(name, value string) { fmt.Fprintf(b, "  %-32s %s\n", name, value) }
	row("backup.num-threads", strconv.Itoa(p.NumThreads))
	row("br --concurrency", strconv.Itoa(p.Concurrency))
	row("compression", compressionText(p))
	row("checksum", onOff(p.Checksum))
	if p.BatchSize > 0 {
		row("backup.batch-size", strconv.Itoa(p.BatchSize))
	}
	if p.RefreshIntervalSeconds > 0 {
		row("backup.auto-tune-refresh-interval", seconds(p.RefreshIntervalSeconds))
	}
}

func compressionText(p app.PlanView) string {
	if p.CompressionLevel != nil {
		return fmt.Sprintf("%s, level %d", p.Compression, *p.CompressionLevel)
	}
	return p.Compression
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func printForecast(b *strings.Builder, p app.PlanView) {
	b.WriteString("\nForecast\n")
	row := func(name, value string) { fmt.Fprintf(b, "  %-20s %s\n", name, value) }
	row("rate", fmt.Sprintf("%.0f MB/s", p.RateMBPerS))
	row("duration", seconds(p.DurationSeconds))
	row("host CPU", policy.FormatRatio(p.HostCPURatio)+" for backup threads, on the busiest host")
	row("GC held", seconds(p.GCHoldSeconds))
	row("lag of a cut", "up to "+seconds(p.ControlLagSeconds))
	row("QPS drop", rangeText(p.QPSDropRatio))
	row("p95 rise", rangeText(p.P95RiseRatio))
}

func rangeText(r policy.Range) string {
	return fmt.Sprintf("%s to %s", policy.FormatRatio(r.Low), policy.FormatRatio(r.High))
}

func printList(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	for _, line := range lines {
		fmt.Fprintf(b, "  %s\n", line)
	}
}

func printAlternatives(b *strings.Builder, alternatives []app.AlternativeView) {
	if len(alternatives) == 0 {
		return
	}
	b.WriteString("\nConsidered\n")
	for _, a := range alternatives {
		choice := fmt.Sprintf("T %d, C %d, %s", a.NumThreads, a.Concurrency, a.Compression)
		fmt.Fprintf(b, "  %-20s %s, host CPU %s: %s\n", choice,
			seconds(a.DurationSeconds), policy.FormatRatio(a.HostCPURatio), a.Why)
	}
}

func shorten(statements []string) []string {
	if len(statements) <= shownSQL {
		return statements
	}
	return append(append([]string{}, statements[:shownSQL]...), fmt.Sprintf("… and %d more (-o json has them all)", len(statements)-shownSQL))
}
