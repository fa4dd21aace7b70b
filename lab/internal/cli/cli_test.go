package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/brctl/brctl/lab/internal/shape"
)

func parse(t *testing.T, args ...string) (*pflag.FlagSet, *shape.Shape) {
	t.Helper()
	sh := shape.Default()
	flags := pflag.NewFlagSet("up", pflag.ContinueOnError)
	addShape(flags, &sh)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return flags, &sh
}

func TestALaterStartKeepsWhatIsNotGiven(t *testing.T) {
	dir := t.TempDir()
	flags, first := parse(t, "--hosts", "2", "--replicas", "2", "--load", "0.1,0.2", "--size", "10GiB", "--kv-delay", "3ms")
	if err := remember(dir, first, flags); err != nil {
		t.Fatal(err)
	}
	flags, second := parse(t, "--load", "0.5", "--size", "20GiB")
	if err := remember(dir, second, flags); err != nil {
		t.Fatal(err)
	}
	if second.Hosts != 2 || second.KVDelay != 3*time.Millisecond {
		t.Errorf("got %+v, want the hosts and the delay of the first start", second)
	}
	if second.Size != 20*1024*shape.MiB || len(second.Load) != 1 || second.Load[0] != 0.5 {
		t.Errorf("got %+v, want the size and load of the second start", second)
	}
}

func TestALaterStartCannotChangeWhatTheDataDependsOn(t *testing.T) {
	dir := t.TempDir()
	flags, sh := parse(t)
	if err := remember(dir, sh, flags); err != nil {
		t.Fatal(err)
	}
	flags, sh = parse(t, "--hosts", "4", "--tables", "40")
	err := remember(dir, sh, flags)
	if err == nil || !strings.Contains(err.Error(), "--hosts: this directory was made with 3, got 4") {
		t.Errorf("got %v, want the flag and both values", err)
	}
}

func TestAllBadFlagsAreReportedAtOnce(t *testing.T) {
	flags, sh := parse(t, "--hosts", "0", "--rows", "0", "--load", "3")
	err := remember(t.TempDir(), sh, flags)
	for _, want := range []string{"--hosts", "--rows", "--load"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s in it", err, want)
		}
	}
}

func TestALoadFileMayHaveAHeading(t *testing.T) {
	points, err := readPoints(strings.NewReader("seconds,value\n0, 0.2\n# a comment\n1.5,0.9\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(points) != 2 || points[1].Seconds != 1.5 || points[1].Value != 0.9 {
		t.Errorf("got %v", points)
	}
	if _, err := readPoints(strings.NewReader("0,1\nx,2\n")); err == nil {
		t.Error("a line that is no number was taken")
	}
}
