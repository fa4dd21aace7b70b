package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/brctl/brctl/internal/journal"
	"github.com/brctl/brctl/pkg/policy"
)

var update = flag.Bool("update", false, "rewrite the outputs that the scripts compare with")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"brctl": main})
}

// TestScripts runs the real command line as its users do: arguments in, texts
// and exit codes out.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"json":    jsonValue,
			"keys":    jsonKeys,
			"journal": writeJournal,
			"damage":  damageLine,
		},
	})
}

// exits runs a program and wants an exit code: exits CODE PROGRAM [ARG...].
func exits(ts *testscript.TestScript, neg bool, args []string) {
	wantArgs(ts, neg, len(args) >= 2, "exits CODE PROGRAM [ARG...]")
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	default:
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// jsonValue compares one value of a document: json FILE PATH WANT [TOLERANCE].
// A path is keys and list indices, with dots between them; WANT is JSON. The
// tolerance is a share of a number.
func jsonValue(ts *testscript.TestScript, neg bool, args []string) {
	wantArgs(ts, neg, len(args) == 3 || len(args) == 4, "json FILE PATH WANT [TOLERANCE]")
	got := lookUp(ts, decode(ts, ts.ReadFile(args[0])), args[1])
	want := decode(ts, args[2])
	if len(args) == 4 {
		tolerance, err := strconv.ParseFloat(args[3], 64)
		ts.Check(err)
		g, okGot := got.(float64)
		w, okWant := want.(float64)
		if !okGot || !okWant || !(math.Abs(g-w) <= tolerance*math.Abs(w)) {
			ts.Fatalf("%s is %v, want %v within %g", args[1], got, want, tolerance)
		}
		return
	}
	if g, w := encode(ts, got), encode(ts, want); g != w {
		ts.Fatalf("%s is %s, want %s", args[1], g, w)
	}
}

// jsonKeys wants keys in an object: keys FILE PATH KEY..., where the path "."
// is the document.
func jsonKeys(ts *testscript.TestScript, neg bool, args []string) {
	wantArgs(ts, neg, len(args) >= 3, "keys FILE PATH KEY...")
	object, ok := lookUp(ts, decode(ts, ts.ReadFile(args[0])), args[1]).(map[string]any)
	if !ok {
		ts.Fatalf("%s is not an object", args[1])
	}
	for _, key := range args[2:] {
		if _, ok := object[key]; !ok {
			ts.Fatalf("%s has no key %q", args[1], key)
		}
	}
}

func lookUp(ts *testscript.TestScript, value any, path string) any {
	if path == "." {
		return value
	}
	for part := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			next, ok := v[part]
			if !ok {
				ts.Fatalf("no %q in %s", part, path)
			}
			value = next
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v) {
				ts.Fatalf("no item %q in %s, which has %d", part, path, len(v))
			}
			value = v[i]
		default:
			ts.Fatalf("nothing below %q in %s", part, path)
		}
	}
	return value
}

// decode wants one JSON document and nothing behind it.
func decode(ts *testscript.TestScript, text string) any {
	var value any
	ts.Check(json.Unmarshal([]byte(text), &value))
	return value
}

func encode(ts *testscript.TestScript, value any) string {
	text, err := json.Marshal(value)
	ts.Check(err)
	return string(text)
}

// writeJournal leaves the journal of a run that died after it had changed two
// instances of a cluster: journal STATE-DIR CLUSTER-ID.
func writeJournal(ts *testscript.TestScript, neg bool, args []string) {
	wantArgs(ts, neg, len(args) == 2, "journal STATE-DIR CLUSTER-ID")
	id, err := strconv.ParseUint(args[1], 10, 64)
	ts.Check(err)
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(journal.Dir(dir), 0o700))
	j, err := journal.Open(journal.Path(dir, id))
	ts.Check(err)
	ts.Check(j.Connect(journal.ConnInfo{
		ClusterID: id, ClusterName: "prod" + args[1],
		PD:   journal.PDConn{Endpoints: []string{"http://127.0.0.1:1"}},
		TiDB: journal.TiDBConn{Endpoints: []string{"127.0.0.1:1"}, User: "brctl"},
	}))
	for i, old := range []string{"8", "12"} {
		instance := "10.0.1.3" + strconv.Itoa(i+1) + ":20160"
		ts.Check(j.Intend("01JDRUN", []journal.Entry{{
			Key: journal.Key{SettingKey: policy.SettingKey{Instance: instance, Name: "backup.num-threads"}, StoreID: uint64(i + 1)},
			Old: old, New: "2",
		}}))
	}
	ts.Check(j.Close())
}

// damageLine flips a bit in the middle of a line: damage FILE NUMBER.
func damageLine(ts *testscript.TestScript, neg bool, args []string) {
	wantArgs(ts, neg, len(args) == 2, "damage FILE NUMBER")
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	lines := bytes.SplitAfter(data, []byte("\n"))
	if n < 1 || n >= len(lines) {
		ts.Fatalf("%s has %d lines", args[0], len(lines)-1)
	}
	line := lines[n-1]
	line[len(line)/2] ^= 1
	ts.Check(os.WriteFile(path, bytes.Join(lines, nil), 0o600))
}

func wantArgs(ts *testscript.TestScript, neg, ok bool, usage string) {
	if neg || !ok {
		ts.Fatalf("usage: %s", usage)
	}
}
