package tidbcfgtest

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"
)

// Fault is what is wrong with one TiKV, as TiDB sees it.
type Fault string

// The faults. Each stays until another one, or None, is set.
const (
	None            Fault = ""
	Refuse          Fault = "refuse"            // "failed to update"
	RefuseOld       Fault = "refuse_old"        // the wording before v5: "fail to update"
	NotPersisted    Fault = "not_persisted"     // changed in memory, file not written
	Unreachable     Fault = "unreachable"       // status port: connection refused
	Redirect        Fault = "redirect"          // something that is no TiKV answers 302
	Hang            Fault = "hang"              // neither SET nor reading ever returns
	HangOnSet       Fault = "hang_on_set"       // only SET hangs; the value is not changed
	ApplyThenLost   Fault = "apply_then_lost"   // changed, then TiDB's connection to us breaks
	Broken          Fault = "broken"            // the TiKV closes SET's connection without an answer
	Killed          Fault = "killed"            // a DBA kills the SET CONFIG
	Ignore          Fault = "ignore"            // "Query OK", nothing changes
	NoStatusAddress Fault = "no_status_address" // the TiKV runs without a status port
)

// TiKV describes one TiKV behind the server.
type TiKV struct {
	Address       string // host:port, as PD knows it
	StatusAddress string
	Cores         float64           // the instance's limit; 16 when zero
	PhysicalCores float64           // of its host; Cores when zero
	Config        map[string]string // over TiKV's defaults, as SHOW CONFIG prints them
}

type tikv struct {
	TiKV
	fault Fault
}

func newTiKV(t TiKV) *tikv {
	if t.Cores == 0 {
		t.Cores = 16
	}
	if t.PhysicalCores == 0 {
		t.PhysicalCores = t.Cores
	}
	config := map[string]string{
		"backup.num-threads":                strconv.Itoa(defaultThreads(t.Cores)),
		"backup.batch-size":                 "8",
		"backup.enable-auto-tune":           "true",
		"backup.auto-tune-refresh-interval": "1m",
		"coprocessor.region-split-size":     "256MiB",
	}
	maps.Copy(config, t.Config)
	t.Config = config
	return &tikv{TiKV: t}
}

// defaultThreads is TiKV's: half of the cores, from 1 to 8.
func defaultThreads(cores float64) int { return min(max(int(cores*0.5), 1), 8) }

// SetFault makes one instance misbehave.
func (s *Server) SetFault(instance string, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tikvs {
		if t.Address == instance {
			t.fault = f
		}
	}
}

// Value returns what an instance really uses, whatever its fault.
func (s *Server) Value(instance, item string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tikvs {
		if t.Address == instance {
			return t.Config[item]
		}
	}
	return ""
}

// SetValue changes a value behind the client's back, as an operator would.
func (s *Server) SetValue(instance, item, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tikvs {
		if t.Address == instance {
			t.Config[item] = value
		}
	}
}

func (s *Server) find(instance string) *tikv {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tikvs {
		if t.Address == instance {
			return t
		}
	}
	return nil
}

// fate is how a request to a node ends.
type fate int

const (
	answers fate = iota
	hangs
	drops
	killed
)

// get is GET /config of one node.
func (s *Server) get(t *tikv) (items map[string]string, warning string, f fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch t.fault {
	case Hang:
		return nil, "", hangs
	case NoStatusAddress:
		return nil, fmt.Sprintf("tikv node %s does not contain status address", t.Address), answers
	case Unreachable:
		return nil, t.dialError("Get"), answers
	case Redirect:
		return nil, t.redirected(), answers
	default:
		return maps.Clone(t.Config), "", answers
	}
}

// post is POST /config of one node, with the literal of a SET CONFIG.
func (s *Server) post(t *tikv, item, literal string) (warning string, f fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch t.fault {
	case Hang, HangOnSet:
		return "", hangs
	case NoStatusAddress:
		return `Post "http:///config": http: no Host in request URL`, answers
	case Unreachable:
		return t.dialError("Post"), answers
	case Redirect:
		return t.redirected(), answers
	case Refuse:
		return t.badRequest(`failed to update, error: "unexpect fields: num_thread"`), answers
	case RefuseOld:
		return t.badRequest(`fail to update, error: "config log-level can not be changed"`), answers
	case Broken:
		return fmt.Sprintf(`Post "http://%s/config": EOF`, t.StatusAddress), answers
	case Killed:
		return "", killed
	case Ignore:
		return "", answers
	default:
	}
	if err := t.update(item, literal); err != nil {
		return t.badRequest(fmt.Sprintf("failed to update, error: %q", err.Error())), answers
	}
	switch t.fault {
	case NotPersisted:
		return t.badRequest(`config changed, but failed to persist change due to err: Os { code: 28, kind: StorageFull, message: "No space left on device" }`), answers
	case ApplyThenLost:
		return "", drops
	default:
		return "", answers
	}
}

func (t *tikv) badRequest(text string) string {
	return fmt.Sprintf("bad request to http://%s/config: %s", t.StatusAddress, text)
}

func (t *tikv) dialError(verb string) string {
	return fmt.Sprintf(`%s "http://%[2]s/config": dial tcp %[2]s: connect: connection refused`, verb, t.StatusAddress)
}

func (t *tikv) redirected() string {
	return fmt.Sprintf("request http://%s/config failed: 302 Found", t.StatusAddress)
}

// update follows TiKV: types are checked, out-of-range values are replaced
// without a word, durations are printed in TiKV's way.
func (t *tikv) update(item, literal string) error {
	if _, known := t.Config[item]; !known {
		return fmt.Errorf("unexpect fields: %s", strings.TrimPrefix(item, "backup."))
	}
	switch item {
	case "backup.num-threads":
		n, err := strconv.Atoi(literal)
		if err != nil {
			return fmt.Errorf("failed to parse: %s", literal)
		}
		if n <= 0 || n > int(t.Cores) {
			n = defaultThreads(t.Cores)
		}
		t.Config[item] = strconv.Itoa(n)
	case "backup.batch-size":
		n, err := strconv.Atoi(literal)
		if err != nil {
			return fmt.Errorf("failed to parse: %s", literal)
		}
		if n == 0 {
			n = 8
		}
		t.Config[item] = strconv.Itoa(n)
	case "backup.auto-tune-refresh-interval":
		d, err := time.ParseDuration(strings.Trim(literal, "'"))
		if err != nil || literal == strings.Trim(literal, "'") {
			return fmt.Errorf("failed to parse: %s", literal)
		}
		t.Config[item] = printDuration(d)
	default:
		t.Config[item] = strings.Trim(literal, "'")
	}
	return nil
}

// printDuration leaves out zero parts, as TiKV's ReadableDuration does: 1m, not
// 1m0s.
func printDuration(d time.Duration) string {
	var b strings.Builder
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}} {
		if n := d / unit.size; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, unit.name)
			d %= unit.size
		}
	}
	if b.Len() == 0 {
		return "0s"
	}
	return b.String()
}
