package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// formatVersion is the format written. A change that an older brctl would
// misread, a new operation included, takes the next number; the shape of a line
// and its checksum never change, so that any brctl can tell "newer" from
// "damaged".
const formatVersion = 1

// op is what a record does to the contents.
type op string

const (
	opSnapshot     op = "snapshot"      // replaces everything before it
	opConnect      op = "connect"       // Conn
	opIntend       op = "intend"        // RunID, Entries
	opSaw          op = "saw"           // Keys, Value
	opClose        op = "close"         // Keys, How
	opChildStarted op = "child_started" // Child
	opChildGone    op = "child_gone"    // Child
)

// record is one line's content. Only the fields of its operation are set.
type record struct {
	At      time.Time        `json:"at"`
	Op      op               `json:"op"`
	RunID   string           `json:"run_id,omitempty"`
	Conn    *ConnInfo        `json:"conn,omitempty"`
	Entries []Entry          `json:"entries,omitempty"`
	Keys    []Key            `json:"keys,omitempty"`
	Value   string           `json:"value,omitempty"`
	How     Closing          `json:"how,omitempty"`
	Child   *policy.ChildRef `json:"child,omitempty"`

	Pending  []Pending         `json:"pending,omitempty"`
	Children []policy.ChildRef `json:"children,omitempty"`
}

// envelope is a line as parsed, before its checksum is believed.
type envelope struct {
	Version int             `json:"v"`
	CRC     string          `json:"crc"`
	Record  json.RawMessage `json:"rec"`
}

// encode returns r as one line with its newline.
func encode(r record) ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	return append(seal(formatVersion, body), '\n'), nil
}

// seal returns the one way to write body as a line of a version. The checksum
// (CRC-32C, hexadecimal) is over the version, a space and the body.
func seal(version int, body []byte) []byte {
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(0, table, fmt.Appendf(nil, "%d ", version))
	sum = crc32.Update(sum, table, body)
	return fmt.Appendf(nil, `{"v":%d,"crc":"%08x","rec":%s}`, version, sum, body)
}

// errDamaged says that a line is not what was written.
type errDamaged struct{ why string }

func (e errDamaged) Error() string { return e.why }

// errNewer says that a line is intact and of a version we do not know.
type errNewer struct{ version int }

func (e errNewer) Error() string { return fmt.Sprintf("format %d", e.version) }

// decode reads a line without its newline. A line is believed only if sealing
// its body again gives the same bytes, which leaves no byte unchecked.
func decode(line []byte) (record, error) {
	var env envelope
	if err := json.Unmarshal(line, &env); err != nil {
		return record{}, errDamaged{err.Error()}
	}
	if !bytes.Equal(line, seal(env.Version, env.Record)) {
		return record{}, errDamaged{"checksum mismatch"}
	}
	if env.Version > formatVersion {
		return record{}, errNewer{env.Version}
	}
	var r record
	if err := json.Unmarshal(env.Record, &r); err != nil {
		return record{}, errDamaged{err.Error()}
	}
	return r, nil
}
