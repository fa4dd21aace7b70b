// Package config owns brctl's YAML file: its schema, its defaults, strict
// decoding and validation. It reads files and resolves secrets; it does not
// talk to a cluster, and it never changes what it was given.
//
// Every problem of a file is reported at once, each with file, line, column
// and path, so that an operator edits once and not once per mistake.
package config

import (
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// Config is one configuration file.
type Config struct {
	State     State      `yaml:"state"`
	Log       Log        `yaml:"log"`
	Clusters  []Cluster  `yaml:"clusters"`
	Storage   []Storage  `yaml:"storage"`
	Schedules []Schedule `yaml:"schedules"`

	positions map[string]string // path → file:line:column, for validation
	file      string
}

// State says where brctl keeps what must survive it.
type State struct {
	Dir string `yaml:"dir"` // database, settings journal, br logs
}

// Log is brctl's own log; br's logs are files under the state directory.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn, error
	Format string `yaml:"format"` // console, json
}

// Cluster is one TiDB cluster.
type Cluster struct {
	Name  string `yaml:"name"`
	PD    PD     `yaml:"pd"`
	TiDB  TiDB   `yaml:"tidb"`
	TiKV  TiKV   `yaml:"tikv"`
	BR    BR     `yaml:"br"`
	Model Model  `yaml:"model"`
	Hosts []Host `yaml:"hosts"`
	Lease Lease  `yaml:"lease"`
}

// PD says how to reach the placement driver. The order of Endpoints is handed
// to br as written, since br refuses to resume a backup when it changes.
type PD struct {
	Endpoints []string `yaml:"endpoints"`
	TLS       TLS      `yaml:"tls"`
	Timeout   Duration `yaml:"timeout"` // of one request
}

// TiDB says how to reach the SQL layer, through which settings are changed.
type TiDB struct {
	Endpoints          []string `yaml:"endpoints"` // host:port, tried in order
	User               string   `yaml:"user"`
	PasswordFile       string   `yaml:"password_file"`
	PasswordEnv        string   `yaml:"password_env"`
	PasswordCredential string   `yaml:"password_credential"` // name of a systemd credential
	TLS                TLS      `yaml:"tls"`
	ConnectTimeout     Duration `yaml:"connect_timeout"`
	StatementTimeout   Duration `yaml:"statement_timeout"`
}

// TiKV says how to read TiKV's status ports.
type TiKV struct {
	TLS     TLS      `yaml:"tls"`
	Timeout Duration `yaml:"timeout"` // of one scrape
}

// TLS names the files of a client's side of TLS. It is off unless CA is set.
type TLS struct {
	CA         string `yaml:"ca"`
	Cert       string `yaml:"cert"`
	Key        string `yaml:"key"`
	ServerName string `yaml:"server_name"` // when the certificate does not name the address dialled
}

// BR is the backup program of one cluster.
type BR struct {
	Path          string   `yaml:"path"`
	StopGrace     Duration `yaml:"stop_grace"`     // from TERM to KILL
	SettleTimeout Duration `yaml:"settle_timeout"` // how long to wait for TiKV to apply the thread limit before br starts
	// NoProgressTimeout is how long br may show the same progress before it is
	// stopped: it can repeat a failing round for ever. 0 = for ever.
	NoProgressTimeout Duration `yaml:"no_progress_timeout"`
}

// Model holds constants of the impact model known for this cluster.
type Model struct {
	MBPerSPerThread float64 `yaml:"mb_per_s_per_thread"` // k; 0 = the prior
}

// Host overrides what cannot be read of a machine.
type Host struct {
	Name  string  `yaml:"name"` // host part of the stores' addresses
	Cores float64 `yaml:"cores"`
}

// Lease is the lock per cluster that every host running brctl sees.
type Lease struct {
	TTL Duration `yaml:"ttl"` // how long a dead holder keeps others out
}

// Storage is a place for backups, shared by schedules.
type Storage struct {
	Name      string  `yaml:"name"`
	URL       string  `yaml:"url"`
	Medium    string  `yaml:"medium"`       // nas, s3, nvme
	MaxMBPerS float64 `yaml:"max_mb_per_s"` // what it can take; 0 = no ceiling known
}

// Schedule is one kind of backup of one cluster.
type Schedule struct {
	Name         string   `yaml:"name"`
	Cluster      string   `yaml:"cluster"`
	Storage      string   `yaml:"storage"`
	Cron         string   `yaml:"cron"`
	Timezone     string   `yaml:"timezone"`
	Mode         string   `yaml:"mode"`    // tiered, optimize
	Goal         string   `yaml:"goal"`    // impact, speed, space, balanced
	Control      string   `yaml:"control"` // on, off
	Limits       Limits   `yaml:"limits"`
	Backup       Backup   `yaml:"backup"`
	Filter       []string `yaml:"filter"` // br table filters; empty = everything
	AllowEmpty   bool     `yaml:"allow_empty"`
	AllowUnusual bool     `yaml:"allow_unusual"`
	MaxDuration  Duration `yaml:"max_duration"` // of a run; longer is stopped
}

// Limits are what a plan of the schedule must keep.
type Limits struct {
	MaxHostCPU    Ratio    `yaml:"max_host_cpu"`
	MaxDuration   Duration `yaml:"max_duration"`
	MaxGCHold     Duration `yaml:"max_gc_hold"`
	MaxQPSDrop    Ratio    `yaml:"max_qps_drop"`
	MaxP95Rise    Ratio    `yaml:"max_p95_rise"`
	NetworkMBPerS float64  `yaml:"network_mb_per_s"`
}

// Backup holds values chosen by hand; absent means that brctl chooses.
type Backup struct {
	NumThreads       *int      `yaml:"num_threads"`
	Concurrency      *int      `yaml:"concurrency"`
	BatchSize        *int      `yaml:"batch_size"`
	RefreshInterval  *Duration `yaml:"refresh_interval"`
	Compression      *string   `yaml:"compression"`
	CompressionLevel *int      `yaml:"compression_level"`
	Checksum         *bool     `yaml:"checksum"`
	RateLimit        *int      `yaml:"ratelimit"` // MB/s per TiKV
	ReplicaReadLabel string    `yaml:"replica_read_label"`
	BaseLoad         *Ratio    `yaml:"base_load"`
}

// Default returns the configuration that an empty file means.
func Default() Config {
	return Config{
		State: State{Dir: "/var/lib/brctl"},
		Log:   Log{Level: "info", Format: "console"},
	}
}

// DefaultCluster returns what a cluster has before its keys are read.
func DefaultCluster() Cluster {
	return Cluster{
		PD:    PD{Timeout: Duration(15 * time.Second)}, // longer than a change of PD's leader takes
		TiDB:  TiDB{User: "root", ConnectTimeout: Duration(5 * time.Second), StatementTimeout: Duration(20 * time.Second)},
		TiKV:  TiKV{Timeout: Duration(5 * time.Second)},
		BR:    BR{Path: "br", StopGrace: Duration(time.Minute), SettleTimeout: Duration(3 * time.Minute), NoProgressTimeout: Duration(30 * time.Minute)},
		Lease: Lease{TTL: Duration(30 * time.Second)},
	}
}

func defaultStorage() Storage { return Storage{Medium: string(policy.MediumNAS)} }

func defaultSchedule() Schedule {
	return Schedule{
		Timezone: "UTC",
		Mode:     string(policy.ModeTiered),
		Goal:     string(policy.GoalBalanced),
		Control:  "off",
	}
}

// FindCluster returns the cluster called name.
func (c *Config) FindCluster(name string) (Cluster, bool) {
	return find(c.Clusters, name, func(x Cluster) string { return x.Name })
}

// FindStorage returns the storage called name.
func (c *Config) FindStorage(name string) (Storage, bool) {
	return find(c.Storage, name, func(x Storage) string { return x.Name })
}

// FindSchedule returns the schedule called name.
func (c *Config) FindSchedule(name string) (Schedule, bool) {
	return find(c.Schedules, name, func(x Schedule) string { return x.Name })
}

// ScheduleNames lists the schedules in file order.
func (c *Config) ScheduleNames() []string {
	names := make([]string, 0, len(c.Schedules))
	for _, s := range c.Schedules {
		names = append(names, s.Name)
	}
	return names
}

func find[T any](items []T, name string, nameOf func(T) string) (T, bool) {
	for _, item := range items {
		if nameOf(item) == name {
			return item, true
		}
	}
	var zero T
	return zero, false
}

// Options translates the schedule, its cluster and its storage into what the
// planner takes.
func (c *Config) Options(s Schedule) policy.Options {
	cluster, _ := c.FindCluster(s.Cluster)
	storage, _ := c.FindStorage(s.Storage)
	o := policy.Options{
		Mode: policy.Mode(s.Mode), Goal: policy.Goal(s.Goal),
		Limits: policy.Limits{
			MaxHostCPU:    float64(s.Limits.MaxHostCPU),
			MaxDuration:   time.Duration(s.Limits.MaxDuration),
			MaxGCHold:     time.Duration(s.Limits.MaxGCHold),
			MaxQPSDrop:    float64(s.Limits.MaxQPSDrop),
			MaxP95Rise:    float64(s.Limits.MaxP95Rise),
			StorageMBPerS: storage.MaxMBPerS,
			NetworkMBPerS: s.Limits.NetworkMBPerS,
		},
		Control:          s.Control == "on",
		AllowUnusual:     s.AllowUnusual,
		NumThreads:       s.Backup.NumThreads,
		Concurrency:      s.Backup.Concurrency,
		BatchSize:        s.Backup.BatchSize,
		RefreshInterval:  (*time.Duration)(s.Backup.RefreshInterval),
		Compression:      s.Backup.Compression,
		CompressionLevel: s.Backup.CompressionLevel,
		Checksum:         s.Backup.Checksum,
		RateLimitMBPerS:  s.Backup.RateLimit,
		ReplicaReadLabel: s.Backup.ReplicaReadLabel,
		Medium:           policy.Medium(storage.Medium),
		BaseLoad:         (*float64)(s.Backup.BaseLoad),
		RatePerThread:    cluster.Model.MBPerSPerThread,
	}
	if o.RatePerThread > 0 {
		o.RateSource = "configured"
	}
	return o
}
