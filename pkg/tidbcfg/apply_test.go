package tidbcfg_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/tidbcfg/tidbcfgtest"
)

func states(results []policy.SetResult) map[string]policy.SetState {
	out := make(map[string]policy.SetState)
	for _, r := range results {
		out[r.Instance] = r.State
	}
	return out
}

func TestApplyTellsApartWhatHappenedOnEachInstance(t *testing.T) {
	server := tidbcfgtest.New(t, tikvs(kv1, kv2, kv3, kv4, kv5)...)
	server.SetFault(kv1, tidbcfgtest.Refuse)
	server.SetFault(kv2, tidbcfgtest.NotPersisted)
	server.SetFault(kv3, tidbcfgtest.Unreachable)
	server.SetFault(kv4, tidbcfgtest.Redirect)
	client := newClient(t, nil, server.Addr())

	var want []policy.Setting
	for _, kv := range []string{kv1, kv2, kv3, kv4, kv5} {
		want = append(want, setting(kv, policy.ItemNumThreads, "2"))
	}
	results := client.Apply(testContext(t), want)

	if diff := cmp.Diff(map[string]policy.SetState{
		kv1: policy.SetRefused,
		kv2: policy.SetNotPersisted,
		kv3: policy.SetUnknown,
		kv4: policy.SetUnknown,
		kv5: policy.SetApplied,
	}, states(results)); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	for i, r := range results {
		if r.Setting != want[i] {
			t.Errorf("result %d is for %v, want %v", i, r.Setting, want[i])
		}
		if changed := server.Value(r.Instance, r.Name) == "2"; changed && !r.MayHaveChanged() {
			t.Errorf("%s was changed and would not be put back: %+v", r.Instance, r)
		}
		if (r.Message == "") != (r.State == policy.SetApplied) {
			t.Errorf("%s: state %s with message %q", r.Instance, r.State, r.Message)
		}
	}
	if got := results[1].Got; got != "2" {
		t.Errorf("value in memory of the TiKV that did not persist it: %q, want 2", got)
	}
	if got := results[2].Message; !strings.Contains(got, "advertise-status-addr") || !strings.Contains(got, "connection refused") {
		t.Errorf("message of an unreachable status port: %s", got)
	}
}

func TestApplyReportsOneFaultyInstanceAndChangesTheOthers(t *testing.T) {
	tests := []struct {
		fault   tidbcfgtest.Fault
		state   policy.SetState
		got     string
		message string
	}{
		{tidbcfgtest.Refuse, policy.SetRefused, "8", `failed to update, error: "unexpect fields: num_thread"`},
		{tidbcfgtest.RefuseOld, policy.SetRefused, "8", `fail to update`},
		{tidbcfgtest.NotPersisted, policy.SetNotPersisted, "2", "failed to persist"},
		{tidbcfgtest.Unreachable, policy.SetUnknown, "", "connection refused"},
		{tidbcfgtest.Redirect, policy.SetUnknown, "", "302 Found"},
		{tidbcfgtest.Hang, policy.SetUnknown, "", "no answer within 700ms"},
		{tidbcfgtest.HangOnSet, policy.SetUnknown, "", "no answer within 700ms"},
		{tidbcfgtest.ApplyThenLost, policy.SetUnknown, "", "invalid connection"},
		{tidbcfgtest.Broken, policy.SetUnknown, "", "EOF"},
		{tidbcfgtest.Killed, policy.SetUnknown, "", "interrupted"},
		{tidbcfgtest.Ignore, policy.SetDifferent, "8", "asked 2, uses 8"},
		{tidbcfgtest.NoStatusAddress, policy.SetUnknown, "", "does not contain status address"},
	}
	for _, tt := range tests {
		t.Run(string(tt.fault), func(t *testing.T) {
			t.Parallel()
			server := tidbcfgtest.New(t, tikvs(kv1, kv2)...)
			server.SetFault(kv1, tt.fault)
			client := newClient(t, shortTimeouts, server.Addr())
			results := client.Apply(testContext(t), []policy.Setting{
				setting(kv1, policy.ItemNumThreads, "2"),
				setting(kv2, policy.ItemNumThreads, "2"),
			})
			if r := results[0]; r.State != tt.state || r.Got != tt.got || !strings.Contains(r.Message, tt.message) {
				t.Errorf("faulty instance: %v", r)
			}
			if r := results[1]; r.State != policy.SetApplied || r.Got != "2" {
				t.Errorf("healthy instance: %v", r)
			}
		})
	}
}

// A TiKV replaces an out-of-range thread count without a word (case 51 of the
// field cases).
func TestApplySaysWhichValueTheInstanceUsesInstead(t *testing.T) {
	server := tidbcfgtest.New(t, tidbcfgtest.TiKV{Address: kv1, StatusAddress: "192.0.2.21:20180", Cores: 8})
	client := newClient(t, nil, server.Addr())
	results := client.Apply(testContext(t), []policy.Setting{setting(kv1, policy.ItemNumThreads, "999")})
	if r := results[0]; r.State != policy.SetDifferent || r.Got != "4" || r.Message != "asked 999, uses 4" {
		t.Errorf("got %v", r)
	}
}

func TestApplyTakesTiKVsSpellingAsTheSameValue(t *testing.T) {
	server := tidbcfgtest.New(t, tikvs(kv1)...)
	client := newClient(t, nil, server.Addr())
	server.SetValue(kv1, policy.ItemRefreshInterval, "10s")
	results := client.Apply(testContext(t), []policy.Setting{setting(kv1, policy.ItemRefreshInterval, "60s")})
	if r := results[0]; r.State != policy.SetApplied || r.Got != "1m" {
		t.Errorf("got %v", r)
	}
}

func TestApplySendsTheSettingsOfAnInstanceInOrderOnOneConnection(t *testing.T) {
	server := tidbcfgtest.New(t, tikvs(kv1)...)
	client := newClient(t, nil, server.Addr())
	client.Apply(testContext(t), []policy.Setting{
		setting(kv1, policy.ItemRefreshInterval, "10s"),
		setting(kv1, policy.ItemBatchSize, "1"),
		setting(kv1, policy.ItemNumThreads, "3"),
	})
	statements := server.Statements()
	var sent []string
	for _, s := range statements {
		sent = append(sent, strings.Fields(s.SQL)[0]+" "+strings.Fields(s.SQL)[1])
		if s.Conn != statements[0].Conn {
			t.Errorf("%q went over another connection, where the warnings are not", s.SQL)
		}
	}
	one := []string{"SET CONFIG", "SHOW WARNINGS", "SELECT `KEY`,"}
	if diff := cmp.Diff(append(append(one, one...), one...), sent); diff != "" {
		t.Errorf("statements (-want +got):\n%s", diff)
	}
	for i, item := range []string{"auto-tune-refresh-interval", "batch-size", "num-threads"} {
		if sql := statements[3*i].SQL; !strings.Contains(sql, item) {
			t.Errorf("statement %d is %q, want %s", 3*i, sql, item)
		}
	}
}

func TestApplyDoesNotSendMoreToAnInstanceThatHangs(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	server := tidbcfgtest.New(t, tikvs(kv1, kv2)...)
	defer server.Close()
	server.SetFault(kv1, tidbcfgtest.HangOnSet)
	client := newClient(t, shortTimeouts, server.Addr())
	defer func() { _ = client.Close() }()

	began := time.Now()
	results := client.Apply(testContext(t), []policy.Setting{
		setting(kv1, policy.ItemRefreshInterval, "10s"),
		setting(kv1, policy.ItemNumThreads, "2"),
		setting(kv2, policy.ItemNumThreads, "2"),
	})
	if took := time.Since(began); took < short || took > 5*short {
		t.Errorf("took %v, want about one statement timeout (%v)", took, short)
	}
	if results[0].State != policy.SetUnknown || results[2].State != policy.SetApplied {
		t.Errorf("got %v", results)
	}
	if r := results[1]; r.State != policy.SetRefused ||
		!strings.HasPrefix(r.Message, "not sent: backup.auto-tune-refresh-interval before it: no answer within") {
		t.Errorf("second setting: %v", r)
	}

	// The connection that was given up still has the hanging statement on it.
	server.SetFault(kv1, tidbcfgtest.None)
	hung := connOf(server, "SET CONFIG '"+kv1)
	results = client.Apply(testContext(t), []policy.Setting{setting(kv1, policy.ItemNumThreads, "2")})
	if results[0].State != policy.SetApplied {
		t.Errorf("after the fault: %v", results[0])
	}
	if again := connOf(server, "SET CONFIG '"+kv1+"' `backup.num-threads`"); again == hung {
		t.Errorf("connection %d was used again after it hung", hung)
	}
}

// connOf returns the connection of the first statement that begins with prefix.
func connOf(server *tidbcfgtest.Server, prefix string) uint32 {
	for _, s := range server.Statements() {
		if strings.HasPrefix(s.SQL, prefix) {
			return s.Conn
		}
	}
	return 0
}

func TestApplyCancelledInFlightIsUnknown(t *testing.T) {
	server := tidbcfgtest.New(t, tikvs(kv1)...)
	server.SetFault(kv1, tidbcfgtest.HangOnSet)
	client := newClient(t, nil, server.Addr())
	ctx, cancel := context.WithCancel(testContext(t))
	go func() {
		for connOf(server, "SET CONFIG") == 0 {
			time.Sleep(time.Millisecond) // no hook says that the statement arrived
		}
		cancel()
	}()
	results := client.Apply(ctx, []policy.Setting{setting(kv1, policy.ItemNumThreads, "2")})
	if r := results[0]; r.State != policy.SetUnknown || !r.MayHaveChanged() {
		t.Errorf("got %v", r)
	}
}

func TestApplyWithoutTiDBSendsNothing(t *testing.T) {
	server := tidbcfgtest.New(t, tikvs(kv1)...)
	server.Close()
	client := newClient(t, shortTimeouts, server.Addr())
	results := client.Apply(testContext(t), []policy.Setting{setting(kv1, policy.ItemNumThreads, "2")})
	if r := results[0]; r.State != policy.SetRefused || !strings.HasPrefix(r.Message, "not sent: connect to TiDB "+server.Addr()) {
		t.Errorf("got %v", r)
	}
}

func TestApplyReportsAnInstanceTiDBDoesNotKnow(t *testing.T) {
	server := tidbcfgtest.New(t, append(tikvs(kv1), tidbcfgtest.TiKV{Address: "TiKV-9.example:20160"})...)
	client := newClient(t, nil, server.Addr())
	results := client.Apply(testContext(t), []policy.Setting{
		setting("192.0.2.21:20180", policy.ItemNumThreads, "2"), // the status address, as in the manual's example
		setting("TiKV-9.example:20160", policy.ItemNumThreads, "2"),
		setting(kv1+`" ; DROP`, policy.ItemNumThreads, "2"),
		setting(kv1, policy.ItemNumThreads, "2"),
	})
	for i, want := range []struct {
		state   policy.SetState
		message string
	}{
		{policy.SetRefused, "instance 192.0.2.21:20180 is not found in this cluster"},
		{policy.SetRefused, "upper-case letters"},
		{policy.SetRefused, "not sent: instance"},
		{policy.SetApplied, ""},
	} {
		if r := results[i]; r.State != want.state || !strings.Contains(r.Message, want.message) {
			t.Errorf("result %d: %v", i, r)
		}
	}
	for _, s := range server.Statements() {
		if strings.Contains(s.SQL, "DROP") {
			t.Errorf("sent %q", s.SQL)
		}
	}
}

func TestApplySurvivesARestartOfTiDBBetweenTwoCalls(t *testing.T) {
	server := tidbcfgtest.New(t, tikvs(kv1, kv2, kv3)...)
	client := newClient(t, nil, server.Addr())
	for round, value := range []string{"2", "3", "4"} {
		results := client.Apply(testContext(t), []policy.Setting{
			setting(kv1, policy.ItemNumThreads, value),
			setting(kv2, policy.ItemNumThreads, value),
			setting(kv3, policy.ItemNumThreads, value),
		})
		for _, r := range results {
			if r.State != policy.SetApplied {
				t.Errorf("round %d: %v", round, r)
			}
		}
		server.DropConnections()
	}
}
