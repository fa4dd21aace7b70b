// Package scrape reads what brctl needs from the status ports of TiKV stores:
// the soft limit and pool size of the backup threads, CPU seconds of the
// process and of its threads, and bytes scanned by backups.
//
// A page of a busy TiKV has several megabytes and is fetched every few seconds
// from every store, next to production. So it is read as a stream, line by
// line, in constant memory, looking at the few families that are named here;
// nothing asks TiKV to compress it, which would cost its CPU more than the
// network saves.
//
// What a store does not say is unknown, never zero: see Value. Rates are made
// by Window, and CoresUsed for a single look; both are pure and know what these
// counters cannot say.
//
// Sources: TiKV's components/tikv_util/src/metrics (threads_linux.rs,
// process_linux.rs) and components/backup/src/metrics.rs, v6.5 … v8.5.
package scrape
