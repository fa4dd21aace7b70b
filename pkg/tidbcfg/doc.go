// Package tidbcfg is brctl's only door to TiDB's SQL: it reads and changes the
// settings of single TiKV instances, reads their hardware and the number of
// tables, and checks that the account may do all that.
//
// What it guarantees:
//
//   - One instance at a time. "SET CONFIG tikv …" is never sent, because TiDB
//     reports the failure of single nodes as warnings of a statement that
//     succeeded.
//   - A result is judged by reading the value back, not by "Query OK". SET
//     CONFIG, its SHOW WARNINGS and the reading back share one connection, since
//     warnings belong to the session.
//   - A hanging node costs its own result and nothing else. TiDB sets no timeout
//     on its requests to TiKV, so every statement has one here, instances are
//     handled in parallel and a connection that was given up is closed.
//   - Text statements only, built from validated parts: no placeholders, hence
//     no COM_STMT_PREPARE, which proxies and some servers refuse.
//
// It keeps no journal and restores nothing: that order of events belongs to the
// run. It never changes GC settings.
//
// Sources: TiDB's pkg/executor/set_config.go, memtable_reader.go and
// pkg/infoschema/tables.go (v8.5), TiKV's src/server/status_server and
// src/config (v6.5 … v8.5), and PingCAP's manual "Modify Configuration
// Dynamically".
package tidbcfg
