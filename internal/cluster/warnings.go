package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// namesShown is how many names a warning lists before it counts the rest.
const namesShown = 5

const (
	// unevenFactor times its share of the leaders is what a store may lead before
	// the forecast, which spreads leaders as bytes are spread, is called too short.
	unevenFactor = 1.5

	// fewLeaders per store on average say nothing: with fewer, chance alone
	// makes them uneven.
	fewLeaders = 30
)

// storeWarnings says what cannot be read of stores that br will ask for data,
// and what is about to change of them.
func storeWarnings(c policy.Cluster) []string {
	var silent, sizeless, blind, leaving []string
	for _, s := range c.BackupStores() {
		name := nameOf(s)
		if s.Silent {
			silent = append(silent, name+since(s.LastHeartbeat))
		} else if s.StatusAddress == "" {
			blind = append(blind, name)
		}
		if s.CapacityBytes == 0 && s.UsedBytes == 0 {
			sizeless = append(sizeless, name)
		}
		if s.State == policy.StoreOffline {
			leaving = append(leaving, fmt.Sprintf("%s (%d leaders)", name, s.LeaderCount))
		}
	}
	return slices.Concat(
		warn("no heartbeat, so not set and not watched, while br may be many times slower (pingcap/tidb#42973): %s", silent),
		warn("PD does not know how much these stores hold, so the amount of data and the duration are forecast too low: %s", sizeless),
		warn("no status address, so CPU and threads are unknown: %s", blind),
		warn("being scaled in, which moves regions while they are backed up: %s", leaving),
		mixedVersions(c),
	)
}

func nameOf(s policy.Store) string { return fmt.Sprintf("store %d at %s", s.ID, s.Address) }

// mixedVersions tells of an upgrade that is running, or was never finished.
func mixedVersions(c policy.Cluster) []string {
	count := map[string]int{}
	for _, s := range c.BackupStores() {
		if s.Version != "" {
			count[s.Version]++
		}
	}
	if len(count) < 2 {
		return nil
	}
	var versions []string
	for _, v := range slices.Sorted(maps.Keys(count)) {
		versions = append(versions, fmt.Sprintf("%s on %d", v, count[v]))
	}
	return warn("TiKV runs in several versions, as in an upgrade: %s", versions)
}

// leaderWarnings names the living stores that lead far more regions than their
// part of the data. br reads leaders, and the fullest store ends a backup.
func leaderWarnings(c policy.Cluster) []string {
	stores := slices.DeleteFunc(c.BackupStores(), func(s policy.Store) bool { return s.Silent })
	var leaders, bytes float64
	for _, s := range stores {
		leaders += float64(s.LeaderCount)
		bytes += float64(s.UsedBytes)
	}
	if bytes == 0 || leaders < fewLeaders*float64(len(stores)) {
		return nil
	}
	var full []string
	for _, s := range stores {
		share := leaders * float64(s.UsedBytes) / bytes
		if float64(s.LeaderCount) > unevenFactor*share {
			full = append(full, fmt.Sprintf("%s (%d, its part is %.0f)", nameOf(s), s.LeaderCount, share))
		}
	}
	return warn("leaders are spread unevenly, so the forecast duration is a lower bound; these stores lead far more regions than their part of the data: %s", full)
}

func since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " (last " + t.UTC().Format(time.RFC3339) + ")"
}

// warn makes one warning of what has one cause, or none.
func warn(format string, names []string) []string {
	if len(names) == 0 {
		return nil
	}
	shown := names
	if len(names) > namesShown {
		shown = append(slices.Clone(names[:namesShown]), fmt.Sprintf("and %d more", len(names)-namesShown))
	}
	return []string{fmt.Sprintf(format, strings.Join(shown, ", "))}
}
