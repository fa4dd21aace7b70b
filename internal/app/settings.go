package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/brctl/brctl/internal/config"
	"github.com/brctl/brctl/internal/engine/br"
	"github.com/brctl/brctl/internal/journal"
)

// DefaultRestoreTimeout is how long a restore keeps trying before it leaves
// the rest to the journal.
const DefaultRestoreTimeout = 2 * time.Minute

// childWait is how long a restore waits for a br that is just ending: after a
// crash of brctl its terminal hangs up, and it needs a moment.
const childWait = 15 * time.Second

// SettingsOptions say where the journals are.
type SettingsOptions struct {
	ConfigPath  string
	ConfigGiven bool   // by the person, not by default
	StateDir    string // wins over the configuration
	Timeout     time.Duration
	Salvage     bool         // go on with what is readable of a damaged journal
	Warn        func(string) // what was odd, for people
}

// located returns o with its state directory. It does not insist on a valid
// configuration, since undoing must work on the day when that is broken, but a
// file that was named and cannot be read is an error: looking elsewhere would
// find nothing, and say so. Only where none was named is the default looked at.
func (o SettingsOptions) located() (SettingsOptions, error) {
	if o.StateDir != "" {
		return o, nil
	}
	dir, err := config.StateDir(o.ConfigPath)
	switch {
	case err == nil:
		o.StateDir = dir
	case o.ConfigGiven:
		return o, &Error{Kind: KindConfig, Err: err, Hint: "name the state directory instead: --state-dir DIR"}
	default:
		o.StateDir = config.Default().State.Dir
	}
	return o, nil
}

// PendingSetting is a setting that is changed and not yet put back.
type PendingSetting struct {
	Cluster  string    `json:"cluster"`
	Instance string    `json:"instance"`
	Name     string    `json:"name"`
	StoreID  uint64    `json:"store_id"`
	Old      string    `json:"old"`
	Ours     string    `json:"ours"` // values of ours, the last one sent last
	RunID    string    `json:"run_id"`
	Since    time.Time `json:"since"`
}

// RestoredSetting is what became of putting one setting back.
type RestoredSetting struct {
	Cluster  string       `json:"cluster"`
	Instance string       `json:"instance"`
	Name     string       `json:"name"`
	Old      string       `json:"old"`
	State    RestoreState `json:"state"`
	Message  string       `json:"message,omitempty"`
}

// listJournals reads the journals of a state directory. Not being able to look
// is never the same as having found nothing.
func listJournals(stateDir string) ([]journal.Listed, error) {
	const hint = "name the directory that brctl runs with: --state-dir DIR"
	info, err := os.Stat(stateDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, trouble(KindNotFound, hint, "there is no state directory %s", stateDir)
	case err == nil && !info.IsDir():
		return nil, trouble(KindNotFound, hint, "%s is not a directory", stateDir)
	case err == nil:
		var listed []journal.Listed
		if listed, err = journal.List(journal.Dir(stateDir)); err == nil {
			return listed, nil
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, &Error{Kind: KindPermission, Err: err, Hint: "run this as the user that brctl runs as"}
	}
	return nil, &Error{Kind: KindFailed, Err: err}
}

// journals returns o with its state directory, and the journals there.
func (o SettingsOptions) journals() (SettingsOptions, []journal.Listed, error) {
	o, err := o.located()
	if err != nil {
		return o, nil, err
	}
	listed, err := listJournals(o.StateDir)
	return o, listed, err
}

// PendingSettings reads the journals. It needs no lock, no configuration and no
// cluster. Together with an error it returns what is readable.
func PendingSettings(opts SettingsOptions) ([]PendingSetting, error) {
	_, listed, err := opts.journals()
	if err != nil {
		return nil, err
	}
	out := []PendingSetting{}
	var errs []error
	for _, l := range listed {
		if l.Err != nil {
			errs = append(errs, l.Err)
		}
		for _, p := range l.Contents.Pending {
			out = append(out, PendingSetting{
				Cluster: l.Contents.Conn.ClusterName, Instance: p.Instance, Name: p.Name, StoreID: p.StoreID,
				Old: p.Old, Ours: strings.Join(p.Ours, ","), RunID: p.RunID, Since: p.Since,
			})
		}
	}
	if len(errs) > 0 {
		return out, &Error{Kind: KindFailed, Err: errors.Join(errs...)}
	}
	return out, nil
}

// RestoreSettings puts back whatever the journals hold, cluster by cluster. One
// that is in use or whose br lives is refused with its pid, after the others
// had their turn: with an error come the results of those.
func RestoreSettings(ctx context.Context, opts SettingsOptions) ([]RestoredSetting, error) {
	opts, listed, err := opts.journals()
	if err != nil {
		return nil, err
	}
	out := []RestoredSetting{}
	var errs []error
	for _, l := range listed {
		if l.Err == nil && len(l.Contents.Pending) == 0 && len(l.Contents.Children) == 0 {
			continue
		}
		restored, err := restoreJournal(ctx, l.Path, opts)
		out = append(out, restored...)
		if err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return out, firstKind(errs)
	}
	return out, nil
}

func firstKind(errs []error) error {
	var e *Error
	if errors.As(errs[0], &e) {
		return &Error{Kind: e.Kind, Err: errors.Join(errs...), Hint: e.Hint}
	}
	return errors.Join(errs...)
}

func restoreJournal(ctx context.Context, path string, opts SettingsOptions) (out []RestoredSetting, err error) {
	open := journal.Open
	if opts.Salvage {
		open = journal.Salvage
	}
	j, err := openJournal(open, path, opts.Warn)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if err := waitForChildren(ctx, j); err != nil {
		return nil, err
	}
	conn := j.Contents().Conn
	if len(conn.TiDB.Endpoints) == 0 {
		return nil, trouble(KindFailed, "put the settings back by hand: brctl settings", "journal %s does not say how to reach its cluster", path)
	}
	s, err := openSession(clusterOf(conn))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	ctx, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	if id, err := s.clusterID(ctx); err == nil && id != conn.ClusterID {
		return nil, trouble(KindFailed, "", "journal %s is of cluster %d, PD at %v is of %d: nothing is touched", path, conn.ClusterID, conn.PD.Endpoints, id)
	}
	leaser, err := s.leaserOf(opts.StateDir)
	if err != nil {
		return nil, err
	}
	var result journal.Result
	if held := underLease(ctx, leaser, opts.Warn, func() { result = j.Restore(ctx, s.restoreOptions(opts.Warn)) }); held != nil {
		return nil, &Error{Kind: KindDeferred, Err: held, Hint: "its settings are on top of these: restore when it has ended"}
	}
	for _, r := range result.Settings {
		out = append(out, RestoredSetting{
			Cluster: conn.ClusterName, Instance: r.Instance, Name: r.Name, Old: r.Old, State: RestoreState(r.State), Message: r.Message,
		})
	}
	return out, result.Err
}

// waitForChildren gives a br that is just ending its moment, and refuses to
// change anything under one that lives on, or whose children do.
func waitForChildren(ctx context.Context, j *journal.Journal) error {
	engine := br.New(br.Config{})
	deadline := time.Now().Add(childWait)
	for {
		left := childrenLeft(engine, j)
		if left == nil || time.Now().After(deadline) {
			return left
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// childrenLeft closes the children that are gone and refuses for the first that
// is not.
func childrenLeft(engine *br.Engine, j *journal.Journal) error {
	for _, ref := range j.Contents().Children {
		if err := engine.Left(ref); err != nil {
			return trouble(KindDeferred, fmt.Sprintf("end it first: kill -TERM %d, and -KILL if that does nothing; brctl run-now does both", ref.PID),
				"br of an earlier run (pid %d): %w: settings are not put back under a running backup", ref.PID, err)
		}
		if err := j.ChildGone(ref); err != nil {
			return &Error{Kind: KindFailed, Err: err}
		}
	}
	return nil
}

// connInfo is what a restore needs to reach the cluster without its
// configuration.
func connInfo(id uint64, c config.Cluster) journal.ConnInfo {
	return journal.ConnInfo{
		ClusterID: id, ClusterName: c.Name,
		PD:   journal.PDConn{Endpoints: c.PD.Endpoints, TLS: journal.TLSFiles(c.PD.TLS)},
		TiDB: journal.TiDBConn{Endpoints: c.TiDB.Endpoints, User: c.TiDB.User, Password: secretSource(c.TiDB), TLS: journal.TLSFiles(c.TiDB.TLS)},
	}
}

func secretSource(t config.TiDB) journal.SecretSource {
	switch {
	case t.PasswordFile != "":
		return journal.SecretSource{Kind: journal.SecretFile, Name: t.PasswordFile}
	case t.PasswordEnv != "":
		return journal.SecretSource{Kind: journal.SecretEnv, Name: t.PasswordEnv}
	case t.PasswordCredential != "":
		return journal.SecretSource{Kind: journal.SecretCredential, Name: t.PasswordCredential}
	}
	return journal.SecretSource{}
}

// clusterOf is the way back from connInfo.
func clusterOf(conn journal.ConnInfo) config.Cluster {
	c := config.DefaultCluster()
	c.Name = conn.ClusterName
	c.PD.Endpoints, c.PD.TLS = conn.PD.Endpoints, config.TLS(conn.PD.TLS)
	c.TiDB.Endpoints, c.TiDB.User, c.TiDB.TLS = conn.TiDB.Endpoints, conn.TiDB.User, config.TLS(conn.TiDB.TLS)
	switch name := conn.TiDB.Password.Name; conn.TiDB.Password.Kind {
	case journal.SecretFile:
		c.TiDB.PasswordFile = name
	case journal.SecretEnv:
		c.TiDB.PasswordEnv = name
	case journal.SecretCredential:
		c.TiDB.PasswordCredential = name
	}
	return c
}
