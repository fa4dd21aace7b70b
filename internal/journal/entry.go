package journal

import (
	"slices"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// ConnInfo is how to reach a cluster without a configuration file. It holds no
// secret: Password says where one is read from.
type ConnInfo struct {
	ClusterID   uint64   `json:"cluster_id"` // PD's; a restore is refused on any other cluster
	ClusterName string   `json:"cluster_name,omitempty"`
	PD          PDConn   `json:"pd"`
	TiDB        TiDBConn `json:"tidb"`
}

// PDConn is how to reach PD.
type PDConn struct {
	Endpoints []string `json:"endpoints"` // host:port or URL, as configured
	TLS       TLSFiles `json:"tls,omitzero"`
}

// TiDBConn is how to reach SQL.
type TiDBConn struct {
	Endpoints []string     `json:"endpoints"` // host:port
	User      string       `json:"user"`
	Password  SecretSource `json:"password,omitzero"`
	TLS       TLSFiles     `json:"tls,omitzero"`
}

// TLSFiles are paths of PEM files and the name expected in the peer's
// certificate.
type TLSFiles struct {
	CA         string `json:"ca,omitempty"`
	Cert       string `json:"cert,omitempty"`
	Key        string `json:"key,omitempty"`
	ServerName string `json:"server_name,omitempty"`
}

// SecretKind says where a secret is read from.
type SecretKind string

// The kinds of source. The zero kind means that there is no password.
const (
	SecretFile       SecretKind = "file"       // Name is a path
	SecretEnv        SecretKind = "env"        // Name is an environment variable
	SecretCredential SecretKind = "credential" // Name is a systemd credential
)

// SecretSource is where a secret is read from, never the secret.
type SecretSource struct {
	Kind SecretKind `json:"kind,omitempty"`
	Name string     `json:"name,omitempty"`
}

// Key names one setting of one store. The same address with another store id is
// another key: what was changed on a store that is gone is not owed to the one
// that took its address.
type Key struct {
	policy.SettingKey
	StoreID uint64 `json:"store_id"` // 0 where the instance is no store
}

// Entry announces one SET.
type Entry struct {
	Key
	Old string `json:"old"` // as read before; ignored while the key is pending
	New string `json:"new"` // about to be sent
}

// Pending is a setting that may have a value of ours and is to be put back.
type Pending struct {
	Key
	Old   string    `json:"old"`
	Ours  []string  `json:"ours"` // every value that is ours, in the order they became so
	Sent  string    `json:"sent"` // the value of ours sent last
	RunID string    `json:"run_id"`
	Since time.Time `json:"since"`
}

func (p Pending) clone() Pending {
	p.Ours = slices.Clone(p.Ours)
	return p
}

// Closing is how a pending setting came to its end.
type Closing string

// The ways a pending setting ends.
const (
	ClosedRestored  Closing = "restored"  // we put the old value back
	ClosedUnchanged Closing = "unchanged" // it never left its old value: the instance refuses to be set
	ClosedForeign   Closing = "foreign"   // somebody else set another value; left alone
	ClosedGone      Closing = "gone"      // its store no longer exists
)
