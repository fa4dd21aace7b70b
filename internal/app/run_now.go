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

// The command line knows no runner: these are what it shows of a run.
type (
	// Status is what a run shows while it works.
	Status = runner.Status
	// HostStatus is one host of a Status.
	HostStatus = runner.HostStatus
	// RestoreState is what became of a setting that was to be put back.
	RestoreState = runner.RestoreState
)

// The restore states and steps that the command line tells apart.
const (
	Restored         = runner.Restored
	RestorePending   = runner.RestorePending
	RestoreUntouched = runner.RestoreUntouched
	StepBackup       = runner.StepBackup
)

// ErrStoppedByOperator is the cause with which a person's wish to stop cancels
// a run's context.
var ErrStoppedByOperator = runner.ErrStoppedByOperator

// RunNowOptions are what a person asks of one run.
type RunNowOptions struct {
	ConfigPath string
	Schedule   string
	NoLease    bool
	NumThreads int // 0: as planned
	Observe    func(Status)
	Warn       func(text string)
}

// RunNow makes one backup in the foreground. The result is valid whenever it has
// a run id, also beside an error: that of books that could not be kept.
func RunNow(ctx context.Context, opts RunNowOptions) (Result, error) {
	t, err := findTarget(opts.ConfigPath, opts.Schedule)
	if err != nil {
		return Result{}, err
	}
	w, err := openWork(ctx, t, opts)
	if err != nil {
		return Result{}, err
	}
	run, err := w.run(ctx, opts)
	if closing := w.close(); closing != nil {
		run.Warnings = append(run.Warnings, closing.Error())
	}
	if err != nil {
		return resultOf(run), &Error{Kind: KindFailed, Err: err}
	}
	return resultOf(run), nil
}

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

// keepTrouble adds what closing had to say without losing the kind of err.
func keepTrouble(err, closing error) error {
	if closing == nil {
		return err
	}
	var e *Error
	if errors.As(err, &e) {
		return &Error{Kind: e.Kind, Err: errors.Join(e.Err, closing), Hint: e.Hint}
	}
	return errors.Join(err, closing)
}

func lockState(dir string) (*state.DirLock, error) {
	lock, err := state.Lock(dir)
	var locked *state.LockedError
	if errors.As(err, &locked) {
		return nil, &Error{Kind: KindDeferred, Err: err, Hint: "wait for it to end, or give this one a state directory of its own"}
	}
	if err != nil {
		return nil, &Error{Kind: KindFailed, Err: err, Hint: "check state.dir and its owner"}
	}
	return lock, nil
}

// openJournal opens a journal with open: journal.Open, or journal.Salvage when a
// person has decided to go on with what is readable of a damaged one.
func openJournal(open func(string, ...journal.Option) (*journal.Journal, error), path string, warn func(string)) (*journal.Journal, error) {
	j, err := open(path, journal.WithHook(crashpoint.Hit))
	var locked *journal.LockedError
	switch {
	case errors.As(err, &locked):
		return nil, &Error{Kind: KindDeferred, Err: err}
	case err != nil:
		return nil, &Error{Kind: KindFailed, Err: err}
	}
	warnAll(warn, j.Notes())
	return j, nil
}

func warnAll(warn func(string), texts []string) {
	for _, text := range texts {
		warn(text)
	}
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

// recover closes the runs of an earlier life, and puts its settings back. While
// another brctl works on the cluster they stay as they are: its own restore
// would come on top of ours.
func (w *work) recover(ctx context.Context, warn func(string)) error {
	unfinished, err := w.db.UnfinishedRuns(ctx, w.id)
	if err != nil {
		return stateTrouble(err)
	}
	left := w.journal.Contents()
	if len(unfinished)+len(left.Pending)+len(left.Children) == 0 {
		return nil
	}
	var failed error
	held := underLease(ctx, w.deps.Leaser, warn, func() {
		warnings, err := runner.Recover(ctx, w.deps, w.request(), w.id)
		warnAll(warn, warnings)
		failed = err
	})
	if held != nil {
		warn("an earlier run is not closed yet: " + held.Error())
	}
	if failed != nil {
		return &Error{Kind: KindFailed, Err: failed}
	}
	return nil
}

// holdLife is longer than br's service safepoints live after br is gone.
const holdLife = 3 * time.Hour

// releaseHolds ends the holds on GC that ended runs could not release, because
// PD did not answer at their end. They would hold GC for over an hour.
func (w *work) releaseHolds(ctx context.Context, warn func(string)) error {
	runs, err := w.db.Runs(ctx, state.Filter{ClusterID: w.id, Since: time.Now().Add(-holdLife)})
	if err != nil {
		return stateTrouble(err)
	}
	for _, run := range runs {
		if !run.Status.Final() || run.ServiceSafePoint == "" {
			continue
		}
		if err := w.deps.SafePoints.Release(ctx, run.ServiceSafePoint); err != nil {
			warn(fmt.Sprintf("service safepoint %s of run %s still holds GC: %s", run.ServiceSafePoint, run.ID, err))
			continue
		}
		warn(fmt.Sprintf("released service safepoint %s, which run %s had left", run.ServiceSafePoint, run.ID))
		none := ""
		if err := w.db.UpdateRun(ctx, run.ID, state.RunUpdate{ServiceSafePoint: &none}); err != nil {
			return stateTrouble(err)
		}
	}
	return nil
}

// underLease undoes under the cluster's lease. A lease that another brctl holds
// is an error, and nothing is undone; an etcd that does not answer is none, for
// undoing must not depend on it.
func underLease(ctx context.Context, take runner.Leaser, warn func(string), undo func()) error {
	lease, err := take(ctx, &runner.Run{ID: "restore"})
	var held *runner.HeldError
	if errors.As(err, &held) {
		return held
	}
	if err != nil {
		warn("restoring without the cluster's lease: " + err.Error())
		undo()
		return nil
	}
	undo()
	releasing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := lease.Release(releasing); err != nil {
		warn("release the cluster's lease: " + err.Error())
	}
	return nil
}

const releaseTimeout = 20 * time.Second

func (w *work) run(ctx context.Context, opts RunNowOptions) (*runner.Run, error) {
	id := ulid.Make().String()
	req := w.request()
	if opts.NumThreads > 0 {
		req.Options.NumThreads = &opts.NumThreads
	}
	run := &runner.Run{
		ID: id, Schedule: w.target.schedule.Name, Trigger: "manual", ClusterName: w.target.cluster.Name,
		ClusterID: w.id, StorageURL: br.RunURL(w.target.base(), time.Now(), id),
	}
	return run, runner.New(w.deps, req).Run(ctx, run)
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
