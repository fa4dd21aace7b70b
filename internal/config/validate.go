package config

import (
	"fmt"
	"math"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	_ "time/tzdata" // zones must work on hosts without a zone database

	"github.com/robfig/cron/v3"

	"github.com/brctl/brctl/pkg/policy"
)

var nameRule = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// Validate returns every problem of c, joined, or nil. It changes nothing.
func (c *Config) Validate() error {
	if problems := c.validate(); len(problems) > 0 {
		return joinProblems(problems)
	}
	return nil
}

func (c *Config) validate() []Problem {
	v := validator{cfg: c}
	v.notEmpty("state.dir", c.State.Dir)
	v.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	v.oneOf("log.format", c.Log.Format, "console", "json")
	if len(c.Clusters) == 0 {
		v.add("clusters", "no cluster is configured; want at least one")
	}
	for i, cluster := range c.Clusters {
		v.cluster(fmt.Sprintf("clusters[%d]", i), cluster)
	}
	for i, storage := range c.Storage {
		v.storage(fmt.Sprintf("storage[%d]", i), storage)
	}
	for i, schedule := range c.Schedules {
		v.schedule(fmt.Sprintf("schedules[%d]", i), schedule)
	}
	v.unique("clusters", len(c.Clusters), func(i int) string { return c.Clusters[i].Name })
	v.unique("storage", len(c.Storage), func(i int) string { return c.Storage[i].Name })
	v.unique("schedules", len(c.Schedules), func(i int) string { return c.Schedules[i].Name })
	return v.problems
}

type validator struct {
	cfg      *Config
	problems []Problem
}

// add reports a problem at path, placed where the path or its nearest parent
// stands in the file.
func (v *validator) add(path, format string, args ...any) {
	position := v.cfg.file
	for p := path; ; {
		if at, ok := v.cfg.positions[p]; ok {
			position = at
			break
		}
		cut := strings.LastIndexAny(p, ".[")
		if cut < 0 {
			break
		}
		p = p[:cut]
	}
	v.problems = append(v.problems, Problem{Position: position, Path: path, Text: fmt.Sprintf(format, args...)})
}

func (v *validator) notEmpty(path, value string) {
	if value == "" {
		v.add(path, "is missing")
	}
}

func (v *validator) oneOf(path, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		v.add(path, "got %q, want one of %s", value, strings.Join(allowed, ", "))
	}
}

func (v *validator) name(path, value string) {
	if !nameRule.MatchString(value) {
		v.add(path, "got %q, want a name of lower-case letters, digits, '.', '_' and '-', starting with a letter or digit", value)
	}
}

func (v *validator) unique(list string, n int, nameOf func(int) string) {
	first := map[string]int{}
	for i := range n {
		name := nameOf(i)
		if before, dup := first[name]; dup && name != "" {
			v.add(fmt.Sprintf("%s[%d].name", list, i), "%q is already the name of %s[%d]", name, list, before)
			continue
		}
		first[name] = i
	}
}

func (v *validator) cluster(path string, c Cluster) {
	v.name(path+".name", c.Name)
	v.pd(path+".pd", c.PD)
	v.tidb(path+".tidb", c.TiDB)
	v.tls(path+".tikv.tls", c.TiKV.TLS)
	v.notEmpty(path+".br.path", c.BR.Path)
	v.positive(path+".pd.timeout", c.PD.Timeout)
	v.positive(path+".tikv.timeout", c.TiKV.Timeout)
	v.positive(path+".br.stop_grace", c.BR.StopGrace)
	v.positive(path+".br.settle_timeout", c.BR.SettleTimeout)
	if d := time.Duration(c.BR.NoProgressTimeout); d > 0 && d < minNoProgress {
		v.add(path+".br.no_progress_timeout", "got %s, want at least %s, since a healthy br may be silent for two, or 0 for no limit", d, minNoProgress)
	}
	if ttl := time.Duration(c.Lease.TTL); ttl < 5*time.Second || ttl > 10*time.Minute {
		v.add(path+".lease.ttl", "got %s, want 5s to 10m", ttl)
	}
	if c.Model.MBPerSPerThread < 0 {
		v.add(path+".model.mb_per_s_per_thread", "got %g, want a positive rate, or 0 for the measured prior", c.Model.MBPerSPerThread)
	}
	for i, h := range c.Hosts {
		at := fmt.Sprintf("%s.hosts[%d]", path, i)
		v.notEmpty(at+".name", h.Name)
		if h.Cores < 1 {
			v.add(at+".cores", "got %g, want the number of CPU cores, at least 1", h.Cores)
		}
	}
}

func (v *validator) positive(path string, d Duration) {
	if d <= 0 {
		v.add(path, "got %s, want more than 0", time.Duration(d))
	}
}

func (v *validator) pd(path string, p PD) {
	if len(p.Endpoints) == 0 {
		v.add(path+".endpoints", "is missing; want PD's client URLs, such as http://10.0.1.11:2379")
	}
	scheme := "http"
	if p.TLS.CA != "" {
		scheme = "https"
	}
	for i, endpoint := range p.Endpoints {
		v.pdEndpoint(fmt.Sprintf("%s.endpoints[%d]", path, i), endpoint, scheme)
	}
	v.tls(path+".tls", p.TLS)
}

func (v *validator) pdEndpoint(path, endpoint, scheme string) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Path != "" && u.Path != "/" || u.User != nil {
		v.add(path, "got %q, want a URL such as %s://10.0.1.11:2379", redactURL(endpoint), scheme)
		return
	}
	if u.Scheme != scheme {
		v.add(path, "got scheme %q, want %s, since pd.tls.ca is %s", u.Scheme, scheme, map[string]string{"http": "not set", "https": "set"}[scheme])
	}
	v.hostPort(path, u.Host, "2379")
}

func (v *validator) hostPort(path, value, port string) {
	host, p, err := net.SplitHostPort(value)
	if err != nil || host == "" {
		v.add(path, "got %q, want host:port, such as %s (IPv6 in brackets)", value, net.JoinHostPort("10.0.1.11", port))
		return
	}
	if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
		v.add(path, "got port %q, want 1 to 65535", p)
	}
}

func (v *validator) tidb(path string, t TiDB) {
	if len(t.Endpoints) == 0 {
		v.add(path+".endpoints", "is missing; want TiDB's addresses, such as 10.0.1.11:4000")
	}
	for i, endpoint := range t.Endpoints {
		v.hostPort(fmt.Sprintf("%s.endpoints[%d]", path, i), endpoint, "4000")
	}
	v.notEmpty(path+".user", t.User)
	sources := 0
	for _, s := range []string{t.PasswordFile, t.PasswordEnv, t.PasswordCredential} {
		if s != "" {
			sources++
		}
	}
	if sources > 1 {
		v.add(path, "more than one of password_file, password_env and password_credential is set; want one")
	}
	v.tls(path+".tls", t.TLS)
	v.positive(path+".connect_timeout", t.ConnectTimeout)
	v.positive(path+".statement_timeout", t.StatementTimeout)
}

func (v *validator) tls(path string, t TLS) {
	if (t.Cert == "") != (t.Key == "") {
		v.add(path, "cert and key belong together; one of them is missing")
	}
	if t.CA == "" && (t.Cert != "" || t.ServerName != "") {
		v.add(path+".ca", "is missing; TLS is on only when it is set")
	}
}

func (v *validator) storage(path string, s Storage) {
	v.name(path+".name", s.Name)
	v.oneOf(path+".medium", s.Medium, "nas", "s3", "nvme")
	if s.MaxMBPerS < 0 {
		v.add(path+".max_mb_per_s", "got %g, want a positive rate, or 0 for no ceiling", s.MaxMBPerS)
	}
	u, err := url.Parse(s.URL)
	switch {
	case s.URL == "":
		v.add(path+".url", "is missing; want a place for backups, such as local:///mnt/backup")
	case err != nil:
		v.add(path+".url", "got %q, which is not a URL", redactURL(s.URL))
	case hasSecret(u):
		v.add(path+".url", "carries credentials; br would show them in its process list and its log. Give them to br in the environment")
	case u.Scheme != "local" && u.Scheme != "file":
		v.add(path+".url", "scheme %q is not supported yet; want local://, a directory mounted on every TiKV host and on this one", u.Scheme)
	case u.Host != "" || !strings.HasPrefix(u.Path, "/"):
		v.add(path+".url", "got %q, want an absolute path, such as local:///mnt/backup", s.URL)
	}
}

// hasSecret reports whether u carries user info or a query, where br expects
// keys.
func hasSecret(u *url.URL) bool { return u.User != nil || u.RawQuery != "" }

// redactURL cuts what may hold credentials from a URL that is to be shown,
// without relying on it being well-formed.
func redactURL(s string) string {
	s, _, _ = strings.Cut(s, "?")
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			return scheme + "://" + hidden + rest[at:]
		}
	}
	return s
}

func (v *validator) schedule(path string, s Schedule) {
	v.name(path+".name", s.Name)
	if _, ok := v.cfg.FindCluster(s.Cluster); !ok {
		v.add(path+".cluster", "got %q, want the name of one of clusters", s.Cluster)
	}
	if _, ok := v.cfg.FindStorage(s.Storage); !ok {
		v.add(path+".storage", "got %q, want the name of one of storage", s.Storage)
	}
	v.cron(path+".cron", s.Cron)
	if _, err := time.LoadLocation(s.Timezone); err != nil || s.Timezone == "" {
		v.add(path+".timezone", "got %q, want an IANA zone such as Asia/Shanghai or UTC", s.Timezone)
	}
	v.oneOf(path+".mode", s.Mode, "tiered", "optimize")
	v.oneOf(path+".goal", s.Goal, "impact", "speed", "space", "balanced")
	v.oneOf(path+".control", s.Control, "on", "off")
	v.share(path+".limits.max_host_cpu", s.Limits.MaxHostCPU)
	v.share(path+".limits.max_qps_drop", s.Limits.MaxQPSDrop)
	v.backup(path+".backup", s.Backup)
	if s.Limits.NetworkMBPerS < 0 {
		v.add(path+".limits.network_mb_per_s", "got %g, want a positive rate", s.Limits.NetworkMBPerS)
	}
}

// backup checks what can be told without the cluster; the planner checks the
// rest against its versions and cores.
func (v *validator) backup(path string, b Backup) {
	if b.BaseLoad != nil {
		v.share(path+".base_load", *b.BaseLoad)
	}
	v.between(path+".num_threads", b.NumThreads, 1, 1024)
	v.between(path+".concurrency", b.Concurrency, 1, 256)
	v.between(path+".batch_size", b.BatchSize, 1, 1024)
	v.between(path+".ratelimit", b.RateLimit, 0, math.MaxInt32)
	v.between(path+".compression_level", b.CompressionLevel, -7, 22)
	if b.Compression != nil {
		v.oneOf(path+".compression", *b.Compression, policy.CodecLZ4, policy.CodecSnappy, policy.CodecZstd)
	}
	if d := b.RefreshInterval; d != nil && (time.Duration(*d) < time.Second || time.Duration(*d) > time.Hour) {
		v.add(path+".refresh_interval", "got %s, want 1s to 1h", time.Duration(*d))
	}
	if key, value, ok := strings.Cut(b.ReplicaReadLabel, ":"); b.ReplicaReadLabel != "" && (!ok || key == "" || value == "") {
		v.add(path+".replica_read_label", "got %q, want a store label as key:value", b.ReplicaReadLabel)
	}
}

func (v *validator) between(path string, value *int, low, high int) {
	if value != nil && (*value < low || *value > high) {
		v.add(path, "got %d, want %d to %d", *value, low, high)
	}
}

func (v *validator) share(path string, r Ratio) {
	if r > 1 {
		v.add(path, "got %g%%, want at most 100%%", r*100)
	}
}

const minNoProgress = 5 * time.Minute

const minEvery = time.Minute

// cron checks a specification. The parser of the library panics on a zone
// without a specification behind it, so zones are refused before it is called;
// they have a key of their own.
func (v *validator) cron(path, spec string) {
	switch {
	case spec == "":
		v.add(path, `is missing; want five fields, such as "0 1 * * *", or @daily`)
		return
	case strings.HasPrefix(spec, "TZ=") || strings.HasPrefix(spec, "CRON_TZ="):
		v.add(path, "got %q; put the zone into timezone", spec)
		return
	}
	if every, ok := strings.CutPrefix(spec, "@every "); ok {
		d, err := time.ParseDuration(every)
		if err == nil && d < minEvery {
			v.add(path, "got %q, want at least @every %s", spec, minEvery)
			return
		}
	}
	if _, err := cron.ParseStandard(spec); err != nil {
		v.add(path, "got %q: %s", spec, err)
	}
}
