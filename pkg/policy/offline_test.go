package policy_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/pkg/policy"
)

func TestAnOfflineClusterHoldsExactlyTheBytesGiven(t *testing.T) {
	spec := policy.OfflineSpec{Bytes: 10*policy.TiB + 7, Hosts: 11, TiKVPerHost: 3, VCores: 48, Tables: 12, Version: "v7.5.1"}
	c := offline(t, spec)
	if c.UsedBytes() != spec.Bytes || len(c.BackupStores()) != 33 || len(c.Hosts) != 11 || c.Replicas != 3 || c.Tables != 12 || c.Version != "v7.5.1" {
		t.Errorf("got %d bytes on %d stores and %d hosts, %d replicas, %d tables, %s",
			c.UsedBytes(), len(c.BackupStores()), len(c.Hosts), c.Replicas, c.Tables, c.Version)
	}
	ids, addresses := map[uint64]bool{}, map[string]bool{}
	for _, s := range c.Stores {
		ids[s.ID], addresses[s.Address] = true, true
	}
	if len(ids) != 33 || len(addresses) != 33 || ids[0] {
		t.Errorf("ids and addresses repeat: %d, %d", len(ids), len(addresses))
	}
}

func TestAnOfflineClusterThatMakesNoSenseIsRefusedAsAWhole(t *testing.T) {
	_, err := policy.OfflineCluster(policy.OfflineSpec{Replicas: -1, Tables: -1, VCores: math.NaN()})
	const want = `size: not given (want such as 10TiB)
hosts: outside 1..10000 (got 0)
tikv-per-host: not a number of instances, or more than 10000 in all (got 0)
vcores: outside 1..10000 (got NaN)
replicas: below 0 (got -1)
tables: below 0 (got -1)`
	var input *policy.InputError
	if !errors.As(err, &input) {
		t.Fatalf("got %v, want an InputError", err)
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := policy.OfflineCluster(policy.OfflineSpec{Bytes: 1, Hosts: 200, TiKVPerHost: 51, VCores: 1}); err == nil {
		t.Error("10200 instances: got no error")
	}
}

func TestATopologyThatMakesNoSenseIsRefusedAsAWhole(t *testing.T) {
	_, err := policy.MakePlan(policy.PlanInput{Cluster: policy.Cluster{
		Replicas: -1, Tables: -1,
		Hosts:  []policy.Host{{Name: "a", Cores: -1, BaseLoad: 1.5}},
		Stores: []policy.Store{{ID: 1, Address: "a:1", State: policy.StoreUp, Cores: math.Inf(1)}},
	}, Options: policy.Options{NumThreads: new(0), Concurrency: new(0), AllowUnusual: true}})
	const want = `num_threads: below 1 (got 0): TiKV would use its default instead
concurrency: not a number of streams (got 0, want 4 to 256)
cluster.replicas: below 0 (got -1)
cluster.tables: below 0 (got -1)
cluster.stores.a:1.cores: not a number of cores (got +Inf)
cluster.hosts.a.cores: not a number of cores (got -1)
cluster.hosts.a.base_load: not a share (got 1.5, want 0..1, such as 0.65 for 65%)`
	if err == nil {
		t.Fatal("got no error")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
