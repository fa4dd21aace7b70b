package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrIncompatible says that br would refuse the cluster for its version.
var ErrIncompatible = errors.New("br and TiKV versions do not go together")

// ConcurrencyMeaning is what br's --concurrency counts.
type ConcurrencyMeaning string

// The meanings of --concurrency.
const (
	TablesInFlight  ConcurrencyMeaning = "tables in flight"  // br before v8.2
	StreamsPerStore ConcurrencyMeaning = "streams per store" // br from v8.2
)

// PoolRule is how TiKV's pool of backup threads follows num-threads.
type PoolRule string

// The pool rules.
const (
	// PoolKeepsSize ignores a shrink of ten threads or fewer: the pool stays at
	// its largest former size and only the soft limit bounds what runs.
	PoolKeepsSize PoolRule = "keeps its largest size"
	// PoolRebuilds is made anew, with the current num-threads, by each request:
	// a raise above the value at request time waits for the next request.
	PoolRebuilds PoolRule = "rebuilt by each request"
)

// Capability is what one version of br or TiKV can do, as far as brctl cares.
// The br fields are asked with br's version, the TiKV fields with TiKV's.
type Capability struct {
	Version Version // the version whose rules are used

	// br
	ChecksumDefault         bool               // what br does without --checksum: true before v8.5.0
	Concurrency             ConcurrencyMeaning // what --concurrency counts
	ResumeMayChangeSpeed    bool               // a resumed run may change concurrency, compression, ratelimit, checksum
	SupportsReplicaReadFlag bool               // --replica-read-label, from v6.6.0

	// TiKV
	Checkpoint         bool     // br can resume: every TiKV is v6.5.0 or newer
	Pool               PoolRule // how the thread pool follows num-threads
	WorkerThreads      []string // thread names in tikv_thread_cpu_seconds_total; N is a number
	DefaultRegionBytes uint64   // coprocessor.region-split-size unless configured
}

// The oldest and newest releases whose rules were read in source.
func oldestKnown() Version { return Version{Major: 6, Minor: 5} }
func newestKnown() Version { return Version{Major: 8, Minor: 5, Patch: 7} }

// CapabilityFor returns what the given version can do. A version that is
// unreadable, empty or outside v6.5 … v8.5 gets the rules of the nearest known
// one and a warning that says so; otherwise the warning is empty.
func CapabilityFor(version string) (Capability, string) {
	v, err := ParseVersion(version)
	switch {
	case strings.TrimSpace(version) == "":
		return capabilityOf(newestKnown()), fmt.Sprintf("version unknown: the rules of %s are assumed", newestKnown())
	case err != nil:
		return capabilityOf(newestKnown()), fmt.Sprintf("version %q is not a release: the rules of %s are assumed", version, newestKnown())
	case v.Compare(oldestKnown()) < 0:
		return capabilityOf(v), fmt.Sprintf("%s is older than %s, the oldest version brctl knows: its rules are assumed", v, oldestKnown())
	case v.Major > 8 || v.Major == 8 && v.Minor > 5:
		return capabilityOf(v), fmt.Sprintf("%s is newer than v8.5, the newest version brctl knows: its rules are assumed", v)
	}
	return capabilityOf(v), ""
}

// capabilityOf is the table: every rule is a release from which it holds, so
// that a version in between or beyond falls under the nearest one by itself.
func capabilityOf(v Version) Capability {
	c := Capability{
		Version:                 v,
		ChecksumDefault:         !v.AtLeast(8, 5, 0),
		Concurrency:             TablesInFlight,
		ResumeMayChangeSpeed:    v.AtLeast(7, 1, 1), // pingcap/tidb#44141; v6.5 … v7.1.0 hash every flag
		SupportsReplicaReadFlag: v.AtLeast(6, 6, 0),
		Checkpoint:              v.AtLeast(6, 5, 0),
		Pool:                    PoolKeepsSize,
		WorkerThreads:           []string{"bkwkr"},
		DefaultRegionBytes:      96 * MiB,
	}
	if v.AtLeast(8, 2, 0) {
		c.Concurrency = StreamsPerStore
	}
	if v.AtLeast(8, 4, 0) {
		c.DefaultRegionBytes = 256 * MiB
	}
	if v.AtLeast(8, 5, 2) {
		c.Pool = PoolRebuilds
		c.WorkerThreads = []string{"bkwkr_vN", "backup_worker_vN"}
	}
	return c
}

// Flags returns the flags of `br backup full` that this version takes, of those
// that brctl may send, sorted.
func (c Capability) Flags() []string {
	flags := []string{
		"backupts", "ca", "cert", "check-requirements", "checksum", "compression", "compression-level",
		"concurrency", "filter", "gcttl", "ignore-stats", "key", "log-file", "log-level", "pd", "ratelimit",
		"send-credentials-to-tikv", "storage", "use-backupmeta-v2",
	}
	if c.SupportsReplicaReadFlag {
		flags = append(flags, "replica-read-label")
	}
	if c.Version.Compare(oldestKnown()) >= 0 {
		flags = append(flags, "use-checkpoint")
	}
	slices.Sort(flags)
	return flags
}

// IsBackupWorker reports whether a TiKV thread of this name does backup work,
// in any version. The names of log backup's threads (backup_stream…) and of the
// two backup-io threads, which num-threads does not bound, are not among them.
func IsBackupWorker(thread string) bool {
	return strings.HasPrefix(thread, "bkwkr") || strings.HasPrefix(thread, "backup_worker")
}

// CheckCompatible applies br's own version check: every store's version is a
// release number, TiKV's major version is br's or one less, and br from v8.2
// refuses TiKV before v8.2. An empty br version, or one of a development build,
// skips the comparisons as br itself does. The error joins all refusals and
// matches ErrIncompatible.
func CheckCompatible(brVersion string, storeVersions []string) error {
	br, err := ParseVersion(brVersion)
	comparable := err == nil
	versions := slices.Compact(slices.Sorted(slices.Values(storeVersions)))
	var refusals []error
	for _, text := range versions {
		kv, err := ParseVersion(text)
		switch {
		case err != nil:
			refusals = append(refusals, fmt.Errorf("%w: %w", ErrIncompatible, err))
		case comparable && !accepts(br, kv):
			refusals = append(refusals, fmt.Errorf("%w: br %s refuses TiKV %s", ErrIncompatible, br, kv))
		}
	}
	return errors.Join(refusals...)
}

func accepts(br, kv Version) bool {
	if br.AtLeast(8, 2, 0) && !kv.AtLeast(8, 2, 0) {
		return false
	}
	return kv.Major <= br.Major && kv.Major >= br.Major-1
}
