// Package journal is the settings journal: what brctl has changed on a cluster
// and not yet put back.
//
// SET CONFIG on a TiKV outlives the one who sent it: TiKV writes the value into
// its own configuration file. So before a value is sent, the journal has the
// value that was there, on disk, fsynced. Whatever happens to brctl after that
// (kill -9, power loss, a full disk), the next start or `brctl settings
// restore` can put the old value back. For that the file carries all that
// undoing needs: how to reach the cluster (endpoints, TLS files and where the
// password is read from, never a password), which store had which value, every
// value that was ever sent, and the engine's processes, because nothing may be
// put back under a backup that still runs.
//
// The file is small, append-only and readable by people: one JSON record per
// line, each with its own checksum. It needs neither brctl's configuration nor
// its database. It belongs to one cluster, and one process at a time writes it;
// anyone may read it meanwhile (Read, List).
//
// The rules that make it trustworthy:
//
//   - Intend returns only after its record is on disk; the caller sends SET
//     CONFIG after that and never before.
//   - "Ours" is every value ever sent for a setting since it was last known to
//     be its owner's, and every value the instance put in place of one of them.
//     Only a value of ours is ever overwritten by a restore.
//   - While a restore is owed, the old value is carried over. It is never read
//     again, since what would be read is ours.
//   - A setting belongs to a store, not to an address: an address that a new
//     store has taken owes nothing to the old one.
//   - What cannot be read is said, never skipped in silence: a torn last line is
//     a note (its write was never confirmed, so nothing was sent), a damaged
//     record before the end is a *CorruptError that still carries the rest.
//
// The package decides what to do with a setting (Decide, pure) and drives it
// (Journal.Restore) through two small interfaces; it speaks to no cluster
// itself.
package journal
