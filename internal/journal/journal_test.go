package journal_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/journal"
	"github.com/brctl/brctl/pkg/policy"
)

var began = time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)

func at(t time.Time) journal.Option {
	return journal.WithClock(func() time.Time { return t })
}

func threads(store uint64) journal.Key {
	return journal.Key{
		SettingKey: policy.SettingKey{Instance: "10.0.0." + strconv.FormatUint(store, 10) + ":20160", Name: policy.ItemNumThreads},
		StoreID:    store,
	}
}

func entry(store uint64, old, value string) journal.Entry {
	return journal.Entry{Key: threads(store), Old: old, New: value}
}

func conn() journal.ConnInfo {
	return journal.ConnInfo{
		ClusterID: 1<<63 + 7,
		PD:        journal.PDConn{Endpoints: []string{"pd-0:2379"}, TLS: journal.TLSFiles{CA: "/etc/ca.pem"}},
		TiDB: journal.TiDBConn{
			Endpoints: []string{"tidb-0:4000"}, User: "brctl",
			Password: journal.SecretSource{Kind: journal.SecretCredential, Name: "tidb-password"},
		},
	}
}

func journalPath(t *testing.T) string {
	t.Helper()
	return journal.Path(t.TempDir(), 7)
}

func mustOpen(t *testing.T, path string, opts ...journal.Option) *journal.Journal {
	t.Helper()
	j, err := journal.Open(path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() }) // a test may have closed it
	return j
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func reopen(t *testing.T, j *journal.Journal, path string, opts ...journal.Option) *journal.Journal {
	t.Helper()
	must(t, j.Close())
	return mustOpen(t, path, opts...)
}

func TestEverythingRecordedIsThereAfterReopening(t *testing.T) {
	path := journalPath(t)
	child := policy.ChildRef{PID: 4242, StartTicks: 1 << 63, BootID: "b"}
	j := mustOpen(t, path, at(began))
	must(t, j.Connect(conn()))
	must(t, j.Intend("run-1", []journal.Entry{entry(1, "8", "4"), entry(2, "16", "4")}))
	must(t, j.SawValue(threads(2), "3"))
	must(t, j.ChildStarted(child))

	got := reopen(t, j, path).Contents()

	want := journal.Contents{
		Conn: conn(),
		Pending: []journal.Pending{
			{Key: threads(1), Old: "8", Ours: []string{"4"}, Sent: "4", RunID: "run-1", Since: began},
			{Key: threads(2), Old: "16", Ours: []string{"4", "3"}, Sent: "4", RunID: "run-1", Since: began},
		},
		Children: []policy.ChildRef{child},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("contents (-want +got):\n%s", diff)
	}
}

func TestASecondRunWithoutARestoreKeepsTheOldestOldValue(t *testing.T) {
	path := journalPath(t)
	j := mustOpen(t, path, at(began))
	must(t, j.Intend("run-1", []journal.Entry{entry(1, "8", "4")}))
	j = reopen(t, j, path, at(began.Add(24*time.Hour)))
	// The second run reads 4, which is ours, and means to send 2 and then 4.
	must(t, j.Intend("run-2", []journal.Entry{entry(1, "4", "2")}))
	must(t, j.Intend("run-2", []journal.Entry{entry(1, "2", "4")}))

	want := []journal.Pending{{Key: threads(1), Old: "8", Ours: []string{"4", "2"}, Sent: "4", RunID: "run-1", Since: began}}
	if diff := cmp.Diff(want, reopen(t, j, path).Pending()); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
}

func TestAnAddressTakenByANewStoreOwesItsOwnOldValue(t *testing.T) {
	j := mustOpen(t, journalPath(t), at(began))
	replaced := entry(1, "16", "4")
	replaced.StoreID = 9
	must(t, j.Intend("run-1", []journal.Entry{entry(1, "8", "4")}))
	must(t, j.Intend("run-2", []journal.Entry{replaced}))

	var olds []string
	for _, p := range j.Pending() {
		olds = append(olds, p.Old)
	}
	if diff := cmp.Diff([]string{"8", "16"}, olds); diff != "" {
		t.Errorf("old values (-want +got):\n%s", diff)
	}
}

func TestAClosedSettingStartsAfreshWithTheValueReadThen(t *testing.T) {
	path := journalPath(t)
	j := mustOpen(t, path, at(began))
	must(t, j.Intend("run-1", []journal.Entry{entry(1, "8", "4")}))
	must(t, j.End(journal.ClosedRestored, threads(1)))
	must(t, j.Intend("run-2", []journal.Entry{entry(1, "12", "6")}))

	want := []journal.Pending{{Key: threads(1), Old: "12", Ours: []string{"6"}, Sent: "6", RunID: "run-2", Since: began}}
	if diff := cmp.Diff(want, reopen(t, j, path).Pending()); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
}

func TestTheFileIsOneLineAgainWhenNothingIsPending(t *testing.T) {
	path := journalPath(t)
	j := mustOpen(t, path)
	must(t, j.Connect(conn()))
	for range 50 {
		must(t, j.Intend("run", []journal.Entry{entry(1, "8", "4"), entry(2, "8", "4")}))
		must(t, j.End(journal.ClosedRestored, threads(1)))
		must(t, j.End(journal.ClosedRestored, threads(2)))
	}
	if n := lines(t, path); n != 1 {
		t.Errorf("%d lines, want 1", n)
	}
	if diff := cmp.Diff(conn(), reopen(t, j, path).Contents().Conn); diff != "" {
		t.Errorf("connection (-want +got):\n%s", diff)
	}
}

func TestTheFileStaysSmallWhileOneSettingCannotBeRestored(t *testing.T) {
	path := journalPath(t)
	j := mustOpen(t, path)
	must(t, j.Intend("run-0", []journal.Entry{entry(9, "8", "4")}))
	journal.SetRewriteFrom(t, j, 4096)
	for range 200 {
		must(t, j.Intend("run", []journal.Entry{entry(1, "8", "4")}))
		must(t, j.End(journal.ClosedRestored, threads(1)))
	}
	info, err := os.Stat(path)
	must(t, err)
	if info.Size() > 4096+1024 {
		t.Errorf("%d bytes, want at most the limit and one record", info.Size())
	}
	if got := reopen(t, j, path).Pending(); len(got) != 1 || got[0].Old != "8" || got[0].StoreID != 9 {
		t.Errorf("pending %+v, want store 9 with old value 8", got)
	}
}

func TestARecordThatTellsNothingNewIsNotWritten(t *testing.T) {
	path := journalPath(t)
	j := mustOpen(t, path)
	must(t, j.SawValue(threads(1), "4"))
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat: %v, want no file before the first record", err)
	}
	must(t, j.Intend("run", []journal.Entry{entry(1, "8", "4")}))
	before := lines(t, path)
	must(t, j.Intend("run", []journal.Entry{entry(1, "4", "4")}))
	must(t, j.SawValue(threads(1), "4"))
	must(t, j.SawValue(threads(2), "4"))
	must(t, j.End(journal.ClosedGone, threads(2)))
	if after := lines(t, path); after != before {
		t.Errorf("%d lines, want %d", after, before)
	}
}

func TestOnlyTheOwnerMayReadTheFiles(t *testing.T) {
	path := journalPath(t)
	j := mustOpen(t, path)
	must(t, j.Intend("run", []journal.Entry{entry(1, "8", "4")}))
	for name, want := range map[string]os.FileMode{filepath.Dir(path): 0o700, path: 0o600, path + ".lock": 0o600} {
		info, err := os.Stat(name)
		must(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", filepath.Base(name), got, want)
		}
	}
}

func TestTheHookSeesTheFileBeforeAndAfterTheIntention(t *testing.T) {
	path := journalPath(t)
	var points []string
	hook := func(point string) {
		c, err := journal.Read(path)
		must(t, err)
		points = append(points, point+" "+strconv.Itoa(len(c.Pending)))
	}
	j := mustOpen(t, path, journal.WithHook(hook))
	must(t, j.Intend("run", []journal.Entry{entry(1, "8", "4")}))
	must(t, j.End(journal.ClosedRestored, threads(1)))
	want := []string{"before_journal 0", "after_journal 1", "after_restore_record 0"}
	if diff := cmp.Diff(want, points); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
}

func TestASecondProcessIsRefusedAndToldWhoHasTheJournal(t *testing.T) {
	path := journalPath(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "JOURNAL_TEST_HOLD="+path)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	ready := make([]byte, 5)
	if _, err := out.Read(ready); err != nil || string(ready) != "held\n" {
		t.Fatalf("child said %q, %v", ready, err)
	}

	_, err = journal.Open(path)
	var locked *journal.LockedError
	if !errors.As(err, &locked) || locked.PID != cmd.Process.Pid {
		t.Errorf("open: %v, want LockedError with pid %d", err, cmd.Process.Pid)
	}
	if c, err := journal.Read(path); err != nil || len(c.Pending) != 1 {
		t.Errorf("read beside the holder: %v, %v, want one pending setting", c.Pending, err)
	}

	must(t, cmd.Process.Signal(syscall.SIGKILL))
	if err := cmd.Wait(); err == nil {
		t.Error("child ended by itself, want it killed")
	}
	if got := mustOpen(t, path).Pending(); len(got) != 1 {
		t.Errorf("pending after the holder was killed: %v, want one setting", got)
	}
}

func TestMain(m *testing.M) {
	if path := os.Getenv("JOURNAL_TEST_HOLD"); path != "" {
		holdForever(path)
	}
	os.Exit(m.Run())
}

// holdForever is the child of the lock test: it opens the journal, records one
// setting, says so and waits to be killed.
func holdForever(path string) {
	j, err := journal.Open(path)
	if err == nil {
		err = j.Intend("run", []journal.Entry{entry(1, "8", "4")})
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
	select {}
}

func TestRecordsOfManyGoroutinesAreAllKept(t *testing.T) {
	path := journalPath(t)
	j := mustOpen(t, path)
	var wg sync.WaitGroup
	for store := range uint64(8) {
		wg.Go(func() {
			for _, value := range []string{"4", "3", "2"} {
				if err := j.Intend("run", []journal.Entry{entry(store, "8", value)}); err != nil {
					t.Error(err)
				}
				j.Pending()
			}
		})
	}
	wg.Wait()
	got := reopen(t, j, path).Pending()
	for _, p := range got {
		if p.Old != "8" || len(p.Ours) != 3 {
			t.Errorf("%+v, want old 8 and three values of ours", p)
		}
	}
	if len(got) != 8 {
		t.Errorf("%d pending, want 8", len(got))
	}
}

func TestListShowsEveryJournalAndHidesNoneBehindABadOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "odd [name]*")
	good, bad := journal.Path(dir, 1), journal.Path(dir, 2)
	j := mustOpen(t, good)
	must(t, j.Intend("run", []journal.Entry{entry(1, "8", "4")}))
	must(t, os.WriteFile(bad, []byte("rubbish\nmore\n"), 0o600))

	got, err := journal.List(journal.Dir(dir))
	must(t, err)
	if len(got) != 2 || got[0].Path != good || len(got[0].Contents.Pending) != 1 || got[0].Err != nil {
		t.Fatalf("listed %+v", got)
	}
	var corrupt *journal.CorruptError
	if !errors.As(got[1].Err, &corrupt) || got[1].Path != bad {
		t.Errorf("bad journal: %v, want CorruptError", got[1].Err)
	}
	if none, err := journal.List(filepath.Join(dir, "missing")); err != nil || len(none) != 0 {
		t.Errorf("missing directory: %v, %v, want nothing", none, err)
	}
}

func lines(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return strings.Count(string(data), "\n")
}
