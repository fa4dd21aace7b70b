package policy_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/pkg/policy"
)

func TestBackupStoresComeByHostThenPort(t *testing.T) {
	var c policy.Cluster
	for i, address := range []string{"b:20160", "a:20161", "a:9999", "[::1]:1", "a", "a:20160"} {
		c.Stores = append(c.Stores, policy.Store{ID: uint64(i), Address: address, State: policy.StoreUp, UsedBytes: 1 << i})
	}
	var got []string
	for _, s := range c.BackupStores() {
		got = append(got, s.Address)
	}
	if want := []string{"[::1]:1", "a", "a:9999", "a:20160", "a:20161", "b:20160"}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if c.UsedBytes() != 63 {
		t.Errorf("used bytes: got %d, want 63", c.UsedBytes())
	}
	for address, want := range map[string]string{"10.0.0.1:20160": "10.0.0.1", "[::1]:20160": "::1", "tikv-1": "tikv-1"} {
		if got := policy.HostOf(address); got != want {
			t.Errorf("host of %q: got %q, want %q", address, got, want)
		}
	}
}

func TestATSIsMillisecondsAndACounter(t *testing.T) {
	at := time.Date(2024, 11, 25, 14, 13, 35, 678_000_000, time.UTC)
	ts := policy.ComposeTS(at.UnixMilli(), 5)
	if !ts.Time().Equal(at) || ts != policy.TSFromTime(at)+5 || ts.Physical() != at.UnixMilli() {
		t.Errorf("got %s at %s", ts, ts.Time())
	}
	if back, err := policy.ParseTS(ts.String()); err != nil || back != ts {
		t.Errorf("%s came back as %s, %v", ts, back, err)
	}
	if back, err := policy.ParseTS("18446744073709551615"); err != nil || back != policy.NoLimitTS || uint64(back) != math.MaxUint64 {
		t.Errorf("no limit: got %s, %v", back, err)
	}
	for _, text := range []string{"", "-1", "2024-11-25", "18446744073709551616"} {
		if got, err := policy.ParseTS(text); err == nil {
			t.Errorf("%q: got %s, want an error", text, got)
		}
	}
	if policy.ComposeTS(0, 1<<18) != 0 {
		t.Error("the counter spills into the milliseconds")
	}
}

func TestARunIsOverInSevenOfItsStates(t *testing.T) {
	for status, want := range map[policy.RunStatus]bool{
		policy.RunQueued: false, policy.RunWaiting: false, policy.RunPreflight: false, policy.RunRunning: false,
		policy.RunThrottled: false, policy.RunPaused: false, policy.RunVerifying: false,
		policy.RunSucceeded: true, policy.RunFailed: true, policy.RunAborted: true, policy.RunCancelled: true,
		policy.RunSkipped: true, policy.RunMissed: true, policy.RunInterrupted: true,
		"unheard of": false,
	} {
		if got := status.Final(); got != want {
			t.Errorf("%s: got %t, want %t", status, got, want)
		}
	}
}

func TestOnlyARefusedSettingIsKnownToBeUnchanged(t *testing.T) {
	for state, want := range map[policy.SetState]bool{
		policy.SetApplied: true, policy.SetNotPersisted: true, policy.SetDifferent: true, policy.SetUnknown: true, policy.SetRefused: false,
	} {
		if got := (policy.SetResult{State: state}).MayHaveChanged(); got != want {
			t.Errorf("%s: got %t, want %t", state, got, want)
		}
	}
}
