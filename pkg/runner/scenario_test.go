package runner_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/runner"
)

// scenario is a world that is not as it should be, and what a run in it comes
// to. What every run owes is checked besides.
type scenario struct {
	world   func(w *world)
	faults  map[string]fault
	request func(r *runner.Request)

	status   policy.RunStatus
	reason   policy.RunReason
	message  []string // each a part of the message
	warnings []string // each a part of a warning
	never    []string // prefixes of effects that must not happen
	released []string // service safepoints that are removed
	keeps    bool     // the journal still owes settings afterwards
}

func (s scenario) run(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, req := newWorld(t), request()
		if s.world != nil {
			s.world(w)
		}
		if s.request != nil {
			s.request(&req)
		}
		l, run := w.begin(s.faults), newRun("run-1")
		_, err := l.run(req, run)
		checkEnded(t, l, run, err)
		if run.Status != s.status || run.Reason != s.reason {
			t.Errorf("got %s %q (%s), want %s %q", run.Status, run.Reason, run.Message, s.status, s.reason)
		}
		for _, part := range s.message {
			if !contains([]string{run.Message}, part) {
				t.Errorf("message %q, want %q in it", run.Message, part)
			}
		}
		for _, part := range s.warnings {
			if !contains(run.Warnings, part) {
				t.Errorf("warnings %q, want one with %q", run.Warnings, part)
			}
		}
		for _, e := range l.effects() {
			if slices.ContainsFunc(s.never, func(p string) bool { return strings.HasPrefix(e.op, p) }) {
				t.Errorf("%s happened", e)
			}
		}
		if diff := cmp.Diff(s.released, w.released); s.released != nil && diff != "" {
			t.Errorf("released service safepoints (-want +got):\n%s", diff)
		}
		if !s.keeps {
			checkClean(t, w)
		}
	})
}

func runAll(t *testing.T, scenarios map[string]scenario) {
	t.Helper()
	for name, s := range scenarios {
		t.Run(name, s.run)
	}
}

func failing(op string, err error) map[string]fault {
	return map[string]fault{op + "#1": func(*life) error { return err }}
}

func TestARunThatMustNotBeginTouchesNothing(t *testing.T) {
	untouched := []string{"journal.intend", "settings.set", "journal.put_back", "engine.start"}
	unhealthy := func(change func(s *policy.Store)) func(*world) {
		return func(w *world) {
			for i := range w.cluster.Stores {
				change(&w.cluster.Stores[i])
			}
		}
	}
	scenarios := map[string]scenario{
		"another run has the cluster": {
			world:  func(w *world) { w.leaseOf = "run-0" },
			status: policy.RunSkipped, reason: policy.ReasonOverlap, message: []string{"run run-0 on other.example has the cluster since"},
			never: []string{"topology.", "settings.", "engine.prepare", "lease.release"},
		},
		"the lease cannot be asked for": {
			faults: failing("lease.take", errors.New("etcd is away")),
			status: policy.RunFailed, reason: policy.ReasonUnavailable, message: []string{"take the cluster's lease: etcd is away"},
		},
		"PD does not answer": {
			faults: failing("topology.cluster", errors.New("no leader")),
			status: policy.RunFailed, reason: policy.ReasonUnavailable, message: []string{"pd: no leader"},
		},
		"there is no store at all": {
			world:  func(w *world) { w.cluster.Stores = nil },
			status: policy.RunFailed, reason: policy.ReasonStoreUnhealthy, message: []string{"no TiKV store"},
		},
		"there are only TiFlash and tombstones": {
			world:  func(w *world) { w.cluster.Stores = w.cluster.Stores[4:] },
			status: policy.RunFailed, reason: policy.ReasonStoreUnhealthy, message: []string{"no TiKV store"},
		},
		"every TiKV is silent": {
			world:  unhealthy(func(s *policy.Store) { s.Silent = true }),
			status: policy.RunFailed, reason: policy.ReasonStoreUnhealthy, message: []string{"none of the 4 TiKV stores sends heartbeats"},
		},
		"TiDB does not answer": {
			faults: failing("settings.grants", errors.New("connection refused")),
			status: policy.RunFailed, reason: policy.ReasonUnavailable, message: []string{"tidb: connection refused"},
		},
		"a grant is missing": {
			faults: failing("settings.grants", runner.Because(policy.ReasonPrivilege, errors.New("CONFIG is not granted"))),
			status: policy.RunFailed, reason: policy.ReasonPrivilege, message: []string{"CONFIG is not granted"},
		},
		"br would refuse the cluster for its version": {
			world:  unhealthy(func(s *policy.Store) { s.Version = "v6.5.3" }),
			status: policy.RunFailed, reason: policy.ReasonVersion, message: []string{"br v8.5.0 refuses TiKV v6.5.3"},
		},
		"the path holds a backup already": {
			world:  func(w *world) { w.artifacts["local:///backups/run-1"] = policy.Artifact{} },
			status: policy.RunFailed, reason: policy.ReasonStorage, message: []string{"already holds a backup or a part of one (complete)"},
		},
		"br of an earlier run could not be ended": {
			world:  func(w *world) { w.children = []policy.ChildRef{{PID: 99, StartTicks: 1, BootID: "b"}} },
			status: policy.RunSkipped, reason: policy.ReasonConflictingWork, message: []string{"may be alive (pid 99)"},
		},
		"backup threads work for a stranger": {
			world:  func(w *world) { w.at("host2:20160").busy = true },
			status: policy.RunSkipped, reason: policy.ReasonConflictingWork, message: []string{"working on host2:20160: another backup is running"},
		},
		"several things are wrong, and all are said": {
			world:  func(w *world) { w.at("host2:20160").busy = true },
			faults: map[string]fault{"settings.grants#1": fails, "engine.inspect#1": fails},
			status: policy.RunFailed, reason: policy.ReasonUnavailable,
			message: []string{"tidb: injected; target: injected; other backup: backup threads are working"},
		},
		"no plan meets the limits": {
			request: func(r *runner.Request) {
				r.Options.Mode, r.Options.Limits.MaxDuration = policy.ModeOptimize, time.Second
			},
			status: policy.RunSkipped, reason: policy.ReasonBudget, message: []string{"max_duration"},
		},
		"the engine cannot be prepared": {
			faults: failing("engine.prepare", errors.New("s3 is not supported yet")),
			status: policy.RunFailed, reason: policy.ReasonEngine, message: []string{"prepare: s3 is not supported yet"},
		},
		"the lease is lost before the first change": {
			faults: map[string]fault{"lease.check#1": losesLease},
			status: policy.RunFailed, reason: policy.ReasonLeaseLost,
		},
		"an old value cannot be read": {
			world:  func(w *world) { w.at("host1:20161").down = true },
			status: policy.RunFailed, reason: policy.ReasonSettings, message: []string{"no value of host1:20161 backup.num-threads (connection refused)"},
		},
	}
	for name, s := range scenarios {
		s.never = append(s.never, untouched...)
		scenarios[name] = s
	}
	runAll(t, scenarios)
}

func TestWhatATiKVMakesOfASettingIsNeverAssumed(t *testing.T) {
	first := func(states ...policy.SetState) func(*world) {
		return func(w *world) { w.at("host1:20161").sets = states }
	}
	noEngine := []string{"engine.start"}
	runAll(t, map[string]scenario{
		"refused": {
			world: first(policy.SetRefused), status: policy.RunFailed, reason: policy.ReasonSettings, never: noEngine,
			message: []string{"host1:20161 backup.num-threads: refused: cannot be changed"},
		},
		"another value is used, which is put back as well": {
			world: first(policy.SetDifferent), status: policy.RunFailed, reason: policy.ReasonSettings, never: noEngine,
			message: []string{"host1:20161 backup.num-threads: asked for 2, got 5"},
		},
		"no answer, although it was set": {
			world: first(policy.SetUnknown), status: policy.RunFailed, reason: policy.ReasonSettings, never: noEngine,
			message: []string{"host1:20161 backup.num-threads: no answer, it may have been set"},
		},
		"set but not written to its file": {
			world: first(policy.SetNotPersisted), status: policy.RunSucceeded,
			warnings: []string{"host1:20161 backup.num-threads: set, but not written to its configuration file: config changed, but failed to persist"},
		},
		"two instances at once, and both are said": {
			world: func(w *world) {
				w.at("host1:20161").sets = []policy.SetState{policy.SetRefused}
				w.at("host2:20160").sets = []policy.SetState{policy.SetDifferent}
			},
			status: policy.RunFailed, reason: policy.ReasonSettings, never: noEngine,
			message: []string{"host1:20161 backup.num-threads: refused", "host2:20160 backup.num-threads: asked for 2, got 5"},
		},
		"the thread limit is not applied in time": {
			faults: map[string]fault{"records.save#6": func(l *life) error { // the SETs are done
				l.do(func() { l.at("host2:20161").softDue = time.Now().Add(time.Hour) })
				return nil
			}},
			status: policy.RunFailed, reason: policy.ReasonSettings, never: noEngine,
			message: []string{"after 20s still above it: host2:20161 (3, want 2)"},
		},
		"the thread limit cannot be seen": {
			world:  func(w *world) { w.at("host1:20160").noSoft = true },
			status: policy.RunSucceeded, warnings: []string{"no tikv_backup_softlimit) on host1:20160"},
		},
	})
}

func TestSomeStoresAreLeftOutAndSaid(t *testing.T) {
	runAll(t, map[string]scenario{
		"a silent store is not waited for": {
			world: func(w *world) {
				w.store(2).Silent = true
				w.at("host1:20161").down = true
			},
			status: policy.RunSucceeded,
		},
		"a store without a status port": {
			world:  func(w *world) { w.store(2).StatusAddress = "" },
			status: policy.RunSucceeded,
			warnings: []string{
				"no status port could be read of host1:20161: CPU and applied threads of it are unknown",
				"applied threads are unknown (no tikv_backup_softlimit) on host1:20161",
			},
		},
		"what the topology could not read": {
			world:  func(w *world) { w.cluster.Warnings = []string{"cores of host1 are unknown"} },
			status: policy.RunSucceeded, warnings: []string{"cores of host1 are unknown"},
		},
	})
}

func TestAnOfflineStoreThatStillLeadsIsBackedUpToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.store(3).State = policy.StoreOffline
		w.store(4).State, w.store(4).LeaderCount = policy.StoreOffline, 0
		_, run := backUp(t, w, "run-1", nil)
		set := map[string]bool{}
		for _, c := range run.Settings {
			set[c.Instance] = true
		}
		if diff := cmp.Diff(map[string]bool{"host1:20160": true, "host1:20161": true, "host2:20160": true}, set); diff != "" {
			t.Errorf("instances that were set (-want +got):\n%s", diff)
		}
	})
}

func TestOnlyABackupThatCanBeReadBackIsASuccess(t *testing.T) {
	ends := func(o policy.Outcome) func(*world) { return func(w *world) { w.outcome = o } }
	runAll(t, map[string]scenario{
		"br exits 0 and leaves nothing": {
			faults: failing("engine.confirm", errors.New("no backupmeta")),
			status: policy.RunFailed, reason: policy.ReasonArtifact, message: []string{"read the backup back: no backupmeta"},
		},
		"the backup is empty": {
			world:  func(w *world) { w.confirmErr = runner.ErrEmptyBackup },
			status: policy.RunFailed, reason: policy.ReasonArtifact, message: []string{"set allow_empty"},
		},
		"the backup is empty, and may be": {
			world:   func(w *world) { w.confirmErr = runner.ErrEmptyBackup },
			request: func(r *runner.Request) { r.AllowEmpty = true },
			status:  policy.RunSucceeded, warnings: []string{"holds no data"},
		},
		"backupmeta has another timestamp than br said": {
			world:  ends(policy.Outcome{Class: policy.OutcomeSuccess, Summary: &policy.Summary{BackupTS: backupTS() + 1}}),
			status: policy.RunFailed, reason: policy.ReasonArtifact, message: []string{"br said"},
		},
		"backupmeta is of another cluster": {
			world:  func(w *world) { w.leftover.ClusterID = 8 },
			status: policy.RunFailed, reason: policy.ReasonArtifact, message: []string{"backupmeta is of cluster 8, this is 7"},
		},
		"files of a store are somewhere else": {
			world:  func(w *world) { w.leftover.MissingStores = []uint64{2} },
			status: policy.RunFailed, reason: policy.ReasonArtifact, message: []string{"files of stores [2] are listed and not visible here"},
		},
		"br does not start": {
			faults: failing("engine.start", errors.New("no such file")),
			status: policy.RunFailed, reason: policy.ReasonEngine, message: []string{"start the engine: no such file"},
		},
		"br fails for good": {
			world: ends(policy.Outcome{Class: policy.OutcomePermanent, Reason: "AccessDenied", Hint: "check the role", ExitCode: 1}),
			never: []string{"engine.confirm"}, status: policy.RunFailed, reason: policy.ReasonEngine,
			message: []string{"br (permanent, exit code 1): AccessDenied (check the role)"},
		},
		"br finds its path in use": {
			world:  ends(policy.Outcome{Class: policy.OutcomeTargetInUse, Reason: "backup meta file exists", ExitCode: 1}),
			status: policy.RunFailed, reason: policy.ReasonStorage, message: []string{"backup meta file exists"},
		},
		"br is killed by the kernel and leaves its service safepoint": {
			world: ends(policy.Outcome{Class: policy.OutcomeKilled, Reason: "killed by signal 9 (OOM?)", ExitCode: -1,
				Signal: "killed", ServiceID: "br-0000", EscapedChild: true}),
			status: policy.RunFailed, reason: policy.ReasonEngine, message: []string{"signal 9"},
			released: []string{"br-0000"}, warnings: []string{"a child of br outlived it"},
		},
		"br dies before it tells of its service safepoint": {
			world: func(w *world) {
				ends(policy.Outcome{Class: policy.OutcomeKilled, Reason: "killed by signal 9 (OOM?)", ExitCode: -1})(w)
				w.script = w.script[len(tells()):]
				w.hold = "br-in-the-log"
			},
			status: policy.RunFailed, reason: policy.ReasonEngine, released: []string{"br-in-the-log"},
		},
		"br's service safepoint cannot be removed": {
			world:  ends(policy.Outcome{Class: policy.OutcomeTransient, Reason: "x", ExitCode: 1, ServiceID: "br-0000"}),
			faults: failing("safepoints.release", errors.New("no leader")),
			status: policy.RunFailed, reason: policy.ReasonEngine,
			warnings: []string{"release br's service safepoint br-0000, which holds GC for up to 72 minutes: no leader"},
		},
		"br's hold on GC is missing": {
			world: func(w *world) {
				w.services = nil
				w.script = append(tells(), progress(time.Second, 0.2), wait(time.Minute))
			},
			status: policy.RunSucceeded, warnings: []string{"br-0001"},
		},
		"br repeats the same progress": {
			world: func(w *world) {
				w.script = append(tells(), progress(time.Minute, 0.47))
				w.script = append(w.script, wait(24*time.Hour))
			},
			request: func(r *runner.Request) { r.NoProgress = 30 * time.Minute },
			status:  policy.RunFailed, reason: policy.ReasonNoProgress,
			message: []string{"br makes no progress: ", "47.00 %", "for 30m0s"},
		},
		"br answers slowly for hours and rightly so": {
			request: func(r *runner.Request) { r.NoProgress = 5 * time.Minute },
			world: func(w *world) {
				w.script = append(tells(), wait(119*time.Second))
				for i := range 5 {
					w.script = append(w.script, progress(2*time.Minute, 0.1*float64(i+1)))
				}
			},
			status: policy.RunSucceeded,
		},
	})
}

func TestSettingsGoBackOnlyWhereTheyAreStillOurs(t *testing.T) {
	late := func(change func(w *world)) func(*world) {
		return func(w *world) { w.script = append(tells(), then(time.Second, func() { change(w) }), wait(time.Second)) }
	}
	key := policy.SettingKey{Instance: "host1:20161", Name: policy.ItemNumThreads}
	runAll(t, map[string]scenario{
		"someone changed one meanwhile": {
			world: late(func(w *world) {
				w.at(key.Instance).settings[key.Name], w.original[key] = "3", "3"
			}),
			status: policy.RunSucceeded, warnings: []string{key.String() + " was changed by someone else meanwhile and is left alone: it has 3"},
		},
		"someone put the old value back already": {
			world:  late(func(w *world) { w.at(key.Instance).settings[key.Name] = w.original[key] }),
			status: policy.RunSucceeded,
		},
		"a TiKV left the cluster": {
			world: late(func(w *world) {
				delete(w.stores, 2)
				for _, name := range []string{policy.ItemNumThreads, policy.ItemBatchSize, policy.ItemRefreshInterval} {
					delete(w.original, policy.SettingKey{Instance: key.Instance, Name: name})
				}
			}),
			status: policy.RunSucceeded,
		},
		"a TiKV is down at the end: the backup is good, the settings are owed": {
			world:  late(func(w *world) { w.at(key.Instance).down = true }),
			status: policy.RunSucceeded, keeps: true,
			warnings: []string{key.String() + " may still be 2, was 7: connection refused"},
		},
		"a TiKV is back before the restore gives up": {
			world: late(func(w *world) { w.at(key.Instance).down = true }),
			faults: map[string]fault{"journal.put_back#30": func(l *life) error {
				l.do(func() { l.at(key.Instance).down = false })
				return nil
			}},
			status: policy.RunSucceeded,
		},
		"br cannot be ended for certain": {
			faults: failing("engine.recover", context.DeadlineExceeded),
			status: policy.RunSucceeded, keeps: true, never: []string{"journal.restore", "journal.put_back"},
			warnings: []string{"settings are not restored while process 1000 may live; run: brctl settings restore"},
		},
	})
}
