package policy_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/pkg/policy"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// goldenInputs are plans whose whole text is kept under testdata/plans, so that
// a change of wording or of a number shows up in review.
func goldenInputs(t *testing.T) map[string]policy.PlanInput {
	t.Helper()
	medium := offline(t, policy.OfflineSpec{Bytes: 30 * policy.TiB, Hosts: 6, TiKVPerHost: 4, VCores: 48, Version: "v6.5.3", Tables: 800})
	large := offline(t, policy.OfflineSpec{Bytes: 60 * policy.TiB, Hosts: 6, TiKVPerHost: 4, VCores: 96, Version: "v8.5.0"})
	uneven := case38()
	uneven.Hosts = []policy.Host{{Name: "192.0.2.21", Cores: 16, BaseLoad: 0.4, BaseKnown: true}, {Name: "192.0.2.22", Cores: 8, BaseLoad: 0.7, BaseKnown: true}}
	uneven.Warnings = []string{"hardware of 192.0.2.23 not read: timeout"}
	return map[string]policy.PlanInput{
		"example-small":        {Cluster: example1(t)},
		"example-medium-space": {Cluster: medium, Options: policy.Options{Goal: policy.GoalSpace, CompressionLevel: new(16), BaseLoad: new(0.25)}},
		"example-large-control": {Cluster: large, BRVersion: "v8.5.0", Options: policy.Options{
			Control: true, Medium: policy.MediumNVMe, BaseLoad: new(0.1),
		}},
		"control-before-8.2": {Cluster: medium, Options: policy.Options{Control: true, BaseLoad: new(0.65)}},
		"optimize-impact": {Cluster: medium, Options: policy.Options{
			Mode: policy.ModeOptimize, Goal: policy.GoalImpact, BaseLoad: new(0.45),
			Limits: policy.Limits{MaxDuration: 8 * time.Hour, MaxHostCPU: 0.8, StorageMBPerS: 500},
		}},
		"uneven-and-silent": {Cluster: uneven, BRVersion: "v8.5.0", Options: policy.Options{RateLimitMBPerS: new(64), Checksum: new(true)}},
	}
}

func TestPlansMatchTheirGoldenFiles(t *testing.T) {
	for name, in := range goldenInputs(t) {
		t.Run(name, func(t *testing.T) {
			plan := mustPlan(t, in)
			plan.Settings = firstAndLast(plan.Settings)
			got, err := json.MarshalIndent(plan, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			path := filepath.Join("testdata", "plans", name+".json")
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s (-want +got), -update to accept:\n%s", path, diff)
			}
		})
	}
}

// firstAndLast keeps the golden files readable; coverage of every instance is
// an invariant.
func firstAndLast(s []policy.Setting) []policy.Setting {
	return []policy.Setting{s[0], s[len(s)-1]}
}
