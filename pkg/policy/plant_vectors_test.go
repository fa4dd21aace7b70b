package policy_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

// plantVectors are hand-checked histories of TiKV's backup pool. The file is
// the lab's, whose model must reproduce them; here they check what the planner
// says of the lag of a cut.
const plantVectors = "../../lab/testdata/plant-vectors.json"

type plantVector struct {
	Name   string
	Stores []struct {
		Settings struct {
			Batch   int     `json:"batch_size"`
			Refresh float64 `json:"refresh_seconds"`
		}
	}
	Steps []struct {
		At      float64
		Request *struct {
			IDs           []string `json:"ids"`
			RegionSeconds float64  `json:"region_seconds"`
		}
		Cancel []string
	}
	Expect struct {
		CutLag *struct{ From, Seconds float64 } `json:"cut_lag_seconds"`
	}
}

// expected is the planner's lag for the vector's cut: with all the streams that
// stand in the queue until it is applied, and the settings at the start.
func (v plantVector) expected() time.Duration {
	const k = 6.0 // MB/s; any, since regions are given in seconds
	streams, region := 0, 0.0
	for _, s := range v.Steps {
		if s.At > v.Expect.CutLag.From+v.Expect.CutLag.Seconds {
			break
		}
		if s.Request != nil {
			streams += len(s.Request.IDs)
			region = max(region, s.Request.RegionSeconds)
		}
		streams -= len(s.Cancel)
	}
	set := v.Stores[0].Settings
	refresh := time.Duration(set.Refresh * float64(time.Second))
	return policy.ExpectedLag(streams, set.Batch, refresh, uint64(region*k*float64(policy.MiB)), k)
}

func TestTheExpectedLagCoversWhatThePoolReallyDoes(t *testing.T) {
	data, err := os.ReadFile(plantVectors)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []plantVector }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, v := range file.Vectors {
		if v.Expect.CutLag == nil {
			continue
		}
		checked++
		lag, expected := v.Expect.CutLag.Seconds, v.expected().Seconds()
		if lag > expected {
			t.Errorf("%s: the cut took %.1f s, the planner says at most %.1f s", v.Name, lag, expected)
		}
		switch v.Name { // the two that the planner's advice rests on: the bound is close, too
		case "a cut behind a long queue takes over half an hour", "a cut with one stream, batch 1 and refresh 10 s takes under half a minute":
			if expected > 1.1*lag {
				t.Errorf("%s: the cut took %.1f s, the planner says %.1f s", v.Name, lag, expected)
			}
		}
	}
	if checked < 5 {
		t.Errorf("only %d vectors have a cut", checked)
	}
}
