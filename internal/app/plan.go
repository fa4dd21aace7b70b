package app

import (
	"errors"

	"github.com/brctl/brctl/internal/engine/br"
	"github.com/brctl/brctl/pkg/policy"
	"github.com/brctl/brctl/pkg/tidbcfg"
)

// PlanReport is a plan with what it would send and start.
type PlanReport struct {
	PlanView
	Command string // the br command, with secrets hidden
}

// PlanOffline plans for a cluster described by hand; adjust changes the
// planner's options. Values that make no sense are KindUsage: all of them were
// given by hand.
func PlanOffline(spec policy.OfflineSpec, adjust func(*policy.Options)) (PlanReport, error) {
	cluster, err := policy.OfflineCluster(spec)
	if err != nil {
		return PlanReport{}, &Error{Kind: KindUsage, Err: err}
	}
	opts := policy.Options{}
	adjust(&opts)
	plan, err := policy.MakePlan(policy.PlanInput{Cluster: cluster, Options: opts})
	if err != nil {
		return PlanReport{}, planTrouble(err, KindUsage)
	}
	return planReport(plan, br.Spec{
		Plan: plan, PDEndpoints: []string{"http://PD:2379"}, StorageURL: "local:///BACKUP/DIRECTORY",
		LogDir: "/var/lib/brctl/log/br", RunID: "RUN",
	}, br.New(br.Config{Binary: "br"}))
}

// planTrouble tells limits that cannot be met, which are the policy's refusal
// and name their remedies, from values that make no sense, which are of kind
// senseless.
func planTrouble(err error, senseless Kind) error {
	var unmet *policy.UnmetError
	if errors.As(err, &unmet) {
		return &Error{Kind: KindDeferred, Err: err, Hint: "relax a limit that is named; none is relaxed for you"}
	}
	return &Error{Kind: senseless, Err: err}
}

func planReport(plan policy.Plan, spec br.Spec, engine *br.Engine) (PlanReport, error) {
	inv, err := engine.Prepare(spec)
	if err != nil {
		return PlanReport{}, &Error{Kind: KindConfig, Err: err}
	}
	report := PlanReport{PlanView: planView(plan), Command: engine.Command(inv)}
	report.BRArgs = inv.Args
	if report.SQL, err = statements(plan.Settings); err != nil {
		return PlanReport{}, &Error{Kind: KindFailed, Err: err}
	}
	return report, nil
}

// statements renders settings as the SQL that is sent.
func statements(settings []policy.Setting) ([]string, error) {
	out := make([]string, 0, len(settings))
	for _, s := range settings {
		text, err := tidbcfg.Statement(s)
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, nil
}
