package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/zap"

	"github.com/brctl/brctl/internal/crashpoint"
	"github.com/brctl/brctl/internal/engine/br"
	"github.com/brctl/brctl/internal/journal"
	"github.com/brctl/brctl/internal/logkey"
	"github.com/brctl/brctl/internal/pd"
	"github.com/brctl/brctl/internal/state"
	"github.com/brctl/brctl/internal/version"
	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/runner"
	"github.com/brctl/brctl/pkg/tidbcfg"
)

// work is what one brctl has open while it works on a cluster.
type work struct {
	target  target
	session *session
	lock    *state.DirLock
	journal *journal.Journal
	db      *state.DB
	log     *zap.Logger
	endLog  func() error
	id      uint64 // cluster id
	deps    runner.Deps
}

// openWork takes the state directory, finishes what an earlier life left, and
// leaves everything ready for a run. A database that cannot be used keeps runs
// from starting, and does not keep settings from going back.
func openWork(ctx context.Context, t target, opts RunNowOptions) (w *work, err error) {
	w = &work{target: t}
	defer func() {
		if err != nil {
			err = keepTrouble(err, w.close())
		}
	}()
	if w.lock, err = lockState(t.cfg.State.Dir); err != nil {
		return w, err
	}
	if w.log, w.endLog, err = openLog(t.cfg); err != nil {
		return w, &Error{Kind: KindFailed, Err: err}
	}
	w.log = w.log.With(zap.String(logkey.Cluster, t.cluster.Name), zap.String(logkey.Schedule, t.schedule.Name))
	if w.session, err = openSession(t.cluster); err != nil {
		return w, err
	}
	if w.id, err = w.session.clusterID(ctx); err != nil {
		return w, err
	}
	if w.journal, err = openJournal(journal.Open, journal.Path(t.cfg.State.Dir, w.id), opts.Warn); err != nil {
		return w, err
	}
	if err = w.journal.Connect(connInfo(w.id, t.cluster)); err != nil {
		return w, &Error{Kind: KindFailed, Err: err}
	}
	if err = w.wire(opts); err != nil {
		return w, err
	}
	w.db, err = state.Open(ctx, t.cfg.State.Dir, state.Options{Brctl: version.Get().Version})
	if err != nil {
		if restoreErr := underLease(ctx, w.deps.Leaser, opts.Warn, func() {
			warnAll(opts.Warn, runner.Undo(ctx, w.deps, w.request()))
		}); restoreErr != nil {
			opts.Warn(restoreErr.Error())
		}
		return w, stateTrouble(err)
	}
	w.deps.Records = newRecords(w.db, w.log)
	if err = w.recover(ctx, opts.Warn); err != nil {
		return w, err
	}
	return w, w.releaseHolds(ctx, opts.Warn)
}

func (s *session) restoreOptions(tell func(string)) journal.RestoreOptions {
	return journal.RestoreOptions{
		Tell:     tell,
		Settings: settings{sql: s.sql, place: "restore_set"}, Topology: storeList{s.pd}, Same: tidbcfg.SameValue,
	}
}

func (w *work) wire(opts RunNowOptions) error {
	grace := time.Duration(w.target.cluster.BR.StopGrace)
	s := w.session
	w.deps = runner.Deps{
		Topology: s, Settings: settings{sql: s.sql, place: "set"}, Gauges: s, SafePoints: safePoints{s.pd}, Protect: protect,
		Journal: books{journal: w.journal, restore: s.restoreOptions(opts.Warn), stores: map[policy.SettingKey]uint64{}},
		Engine: engine{br: s.engine, base: w.target.storage.URL, grace: grace, spec: func(run *runner.Run) br.Spec {
			return w.target.spec(*run.Plan, run.StorageURL, run.ID)
		}},
		Same:    tidbcfg.SameValue,
		Now:     time.Now,
		Observe: opts.Observe,
		Reached: crashpoint.Hit,
	}
	if opts.NoLease {
		opts.Warn("running without the cluster's lease: nothing keeps another host from starting a backup")
		w.deps.Leaser = func(context.Context, *runner.Run) (runner.Lease, error) { return noLease{}, nil }
		return nil
	}
	leaser, err := s.leaserOf(w.target.cfg.State.Dir)
	w.deps.Leaser = leaser
	return err
}

// leaserOf takes leases in the name of a state directory.
func (s *session) leaserOf(stateDir string) (runner.Leaser, error) {
	id, err := stateID(stateDir)
	if err != nil {
		return nil, &Error{Kind: KindFailed, Err: err}
	}
	return s.leaser(time.Duration(s.conf.Lease.TTL), pd.LeaseInfo{
		Owner: hostName(), PID: os.Getpid(), StateDir: stateDir, StateID: id,
	}), nil
}

// stateID returns the name that a state directory has for life. A lease that
// bears it belongs to whoever holds the directory's lock.
func stateID(dir string) (string, error) {
	path := filepath.Join(dir, "id")
	data, err := os.ReadFile(path)
	if id := strings.TrimSpace(string(data)); err == nil && id != "" {
		return id, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read state id: %w", err)
	}
	id := ulid.Make().String()
	if err := os.WriteFile(path, []byte(id+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write state id: %w", err)
	}
	return id, nil
}

func (w *work) request() runner.Request {
	return runner.Request{
		Options: w.target.cfg.Options(w.target.schedule), AllowEmpty: w.target.schedule.AllowEmpty,
		MaxDuration:   time.Duration(w.target.schedule.MaxDuration),
		SettleTimeout: time.Duration(w.target.cluster.BR.SettleTimeout),
		NoProgress:    time.Duration(w.target.cluster.BR.NoProgressTimeout),
		UndoTimeout:   DefaultRestoreTimeout + time.Duration(w.target.cluster.BR.StopGrace),
	}
}

func (w *work) close() error {
	var errs []error
	if w.db != nil {
		errs = append(errs, w.db.Close())
	}
	if w.journal != nil {
		errs = append(errs, w.journal.Close())
	}
	if w.session != nil {
		errs = append(errs, w.session.close())
	}
	if w.endLog != nil {
		errs = append(errs, w.endLog())
	}
	if w.lock != nil {
		errs = append(errs, w.lock.Unlock())
	}
	return errors.Join(errs...)
}
