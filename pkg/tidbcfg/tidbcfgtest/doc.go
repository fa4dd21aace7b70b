// Package tidbcfgtest holds Server, a fake TiDB for tests: it works, in memory,
// over TCP and MySQL's wire protocol, so that the real driver is tested too.
//
// It understands the statements brctl sends and answers as TiDB v8.5 and the
// TiKVs behind it would: per-node failures of SET CONFIG are warnings of a
// statement that succeeds, warnings belong to the connection that caused them,
// cluster_config asks the nodes that its predicates name, TiKV replaces an
// out-of-range num-threads by its default and prints durations its own way.
// Faults are set per instance.
//
// It does not parse SQL in general, keep tables, run transactions or speak the
// binary protocol: COM_STMT_PREPARE is refused, as some proxies do.
package tidbcfgtest
