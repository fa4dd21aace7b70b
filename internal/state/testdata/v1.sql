-- Dump of a state database of schema 1 with one run whose every column is set.
-- A later brctl must read it as it stands: it never changes.
CREATE TABLE attempts (
	run_id     TEXT    NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
	n          INTEGER NOT NULL, -- from 1
	started_at INTEGER NOT NULL,
	ended_at   INTEGER,
	child      TEXT,
	outcome    TEXT,
	PRIMARY KEY (run_id, n)
) STRICT, WITHOUT ROWID;
CREATE TABLE events (
	run_id  TEXT    NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
	seq     INTEGER NOT NULL, -- from 1
	at      INTEGER NOT NULL,
	kind    TEXT    NOT NULL,
	message TEXT    NOT NULL,
	data    TEXT,
	PRIMARY KEY (run_id, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE runs (
	id                 TEXT    PRIMARY KEY, -- ULID
	cluster_id         TEXT    NOT NULL,
	cluster_name       TEXT    NOT NULL,
	schedule           TEXT    NOT NULL,
	triggered_by       TEXT    NOT NULL,
	status             TEXT    NOT NULL,
	final              INTEGER NOT NULL, -- 1 when the status is an end
	step               TEXT    NOT NULL,
	verdict            TEXT    NOT NULL, -- the status it will end with once all is put back, '' while open
	reason             TEXT    NOT NULL,
	message            TEXT    NOT NULL,
	warnings           TEXT    NOT NULL, -- JSON array
	plan               TEXT,
	invocation         TEXT,
	storage_url        TEXT    NOT NULL,
	backup_ts          TEXT    NOT NULL,
	service_safe_point TEXT    NOT NULL, -- service id in PD
	size_bytes         TEXT    NOT NULL,
	forecast_ms        INTEGER NOT NULL,
	duration_ms        INTEGER NOT NULL,
	created_at         INTEGER NOT NULL,
	started_at         INTEGER,
	ended_at           INTEGER,
	host               TEXT    NOT NULL,
	pid                INTEGER NOT NULL,
	boot_id            TEXT    NOT NULL,
	fence              TEXT    NOT NULL
) STRICT;
INSERT INTO "runs" VALUES('01KJKHZEBV0400000000000000','18446744073709551615','prod','nightly','manual','running',0,'engine','failed','gc','it''s "quoted" – ünïcode','["one","it''s \"two\""]','{"tier":"large","mode":"","num_threads":4,"concurrency":0,"batch_size":0,"refresh_interval":10000000000,"compression":"zstd","compression_level":3,"checksum":false,"settings":null,"forecast":{"rate_mb_per_s":1440.5,"duration":0,"host_cpu_ratio":0,"gc_hold":0,"control_lag":0,"qps_drop":{"low":0,"high":0,"source":""},"p95_rise":{"low":0,"high":0,"source":""}},"reasons":null,"warnings":null,"alternatives":null}','{"engine":"br","binary":"","args":["backup","full"],"storage_url":"","log_file":"","output_file":"","credential_env":{"A":"file:/x"}}','local:///b','18446744073709551615','br-x','18446744073709551615',5400000,5460007,1772330400123,1772330401123,1772337600123,'db-1',4242,'b00t','18446744073709551614');
CREATE TABLE schema_versions (
	version    INTEGER PRIMARY KEY,
	applied_at INTEGER NOT NULL,
	brctl      TEXT    NOT NULL -- version of the brctl that applied it
) STRICT;
INSERT INTO "schema_versions" VALUES(1,1772330400123,'v1.0.0');
CREATE TABLE settings (
	run_id    TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
	instance  TEXT NOT NULL,
	name      TEXT NOT NULL,
	store_id  TEXT NOT NULL,
	old_value TEXT NOT NULL,
	set_value TEXT NOT NULL,
	restored  TEXT NOT NULL,
	message   TEXT NOT NULL,
	PRIMARY KEY (run_id, instance, name, store_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_by_schedule ON runs (cluster_id, schedule, created_at);
CREATE INDEX runs_by_time     ON runs (created_at);
CREATE INDEX runs_unfinished  ON runs (cluster_id) WHERE final = 0;
