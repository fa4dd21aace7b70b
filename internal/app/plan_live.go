package app

import (
	"context"
	"time"

	"github.com/brctl/brctl/internal/engine/br"
	"github.com/brctl/brctl/pkg/policy"
)

// PlanLive plans a schedule's backup from the live cluster; adjust changes the
// planner's options. It changes nothing.
func PlanLive(ctx context.Context, path, schedule string, adjust func(*policy.Options)) (PlanReport, error) {
	t, err := findTarget(path, schedule)
	if err != nil {
		return PlanReport{}, err
	}
	s, err := openSession(t.cluster)
	if err != nil {
		return PlanReport{}, err
	}
	defer func() { _ = s.close() }() // nothing was changed that a close could lose
	if _, err := s.clusterID(ctx); err != nil {
		return PlanReport{}, err
	}
	c, err := s.Cluster(ctx)
	if err != nil {
		return PlanReport{}, trouble(KindUnavailable, "", "%w", err)
	}
	opts := t.cfg.Options(t.schedule)
	adjust(&opts)
	version, err := s.engine.Version(ctx)
	if err != nil {
		c.Warnings = append(c.Warnings, err.Error())
	}
	plan, err := policy.MakePlan(policy.PlanInput{Cluster: c, BRVersion: version, Options: opts})
	if err != nil {
		return PlanReport{}, planTrouble(err, KindConfig)
	}
	return planReport(plan, t.spec(plan, br.RunURL(t.base(), time.Now(), "RUN"), "RUN"), s.engine)
}

// spec says how br is started for a run of the schedule.
func (t target) spec(plan policy.Plan, storageURL, runID string) br.Spec {
	tls := t.cluster.PD.TLS
	return br.Spec{
		Plan: plan, PDEndpoints: t.cluster.PD.Endpoints,
		PDTLS:      br.TLS{CA: tls.CA, Cert: tls.Cert, Key: tls.Key},
		StorageURL: storageURL, Filters: t.schedule.Filter, RunID: runID, LogDir: t.logDir(),
	}
}
