package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brctl/brctl/internal/cluster"
	"github.com/brctl/brctl/pkg/policy"
)

func TestCoresOfAHost(t *testing.T) {
	one := []policy.Store{tikv(1, "a", 0)}
	two := []policy.Store{tikv(1, "a", 0), tikv(2, "a", 1)}
	hw := func(l, p float64) map[string]cluster.Hardware {
		return map[string]cluster.Hardware{"a:20160": {Logical: l, Physical: p}, "a:20161": {Logical: l, Physical: p}}
	}
	q := func(first, second float64) map[string]float64 {
		return map[string]float64{"a:20180": first, "a:20181": second}
	}
	const (
		boundText   = "TiKV is bound to a part of its host, so the host's cores are unknown; set hosts.<host>.cores: "
		unknownText = "cores of the host are unknown; set hosts.<host>.cores: a"
		unsureText  = "each TiKV's own limit is taken as the cores of a host with several, as nothing tells whether they are bound to parts of it; set hosts.<host>.cores to be sure: a (limit 24)"
		lessText    = "hosts.<host>.cores is less than a TiKV there says it may use: a (limit 48)"
	)
	cases := map[string]struct {
		stores     []policy.Store
		configured float64
		quotas     map[string]float64
		hardware   map[string]cluster.Hardware
		want       policy.Host
		warning    string
	}{
		"the configured value wins":                   {two, 64, q(24, 24), hw(24, 48), policy.Host{Cores: 64, CoresSource: "configured"}, ""},
		"a configured value below a limit is said":    {one, 32, q(48, 0), nil, policy.Host{Cores: 32, CoresSource: "configured"}, lessText},
		"one TiKV's quota is the host":                {one, 0, q(16, 0), nil, policy.Host{Cores: 16, CoresSource: "quota"}, ""},
		"the quota wins over cluster_hardware":        {one, 0, q(16, 0), hw(48, 8), policy.Host{Cores: 16, CoresSource: "quota"}, ""},
		"cluster_hardware where there is no quota":    {one, 0, q(0, 0), hw(48, 24), policy.Host{Cores: 48, CoresSource: "cluster_hardware"}, ""},
		"several TiKVs that see the whole machine":    {two, 0, q(48, 48), hw(48, 24), policy.Host{Cores: 48, CoresSource: "quota"}, ""},
		"several TiKVs without hyper-threads":         {two, 0, q(48, 48), hw(48, 48), policy.Host{Cores: 48, CoresSource: "quota"}, ""},
		"fewer logical than physical cores is bound":  {two, 0, q(24, 24), hw(24, 48), policy.Host{}, boundText + "a (limit 24 of 48 physical cores)"},
		"one TiKV under a CPU quota is bound":         {one, 0, q(12.5, 0), hw(12.5, 48), policy.Host{}, boundText + "a (limit 12.5 of 48 physical cores)"},
		"neighbours with different limits are bound":  {two, 0, q(16, 32), nil, policy.Host{}, boundText + "a (limit 16, 32)"},
		"several TiKVs and no word of the machine":    {two, 0, q(24, 24), nil, policy.Host{Cores: 24, CoresSource: "quota"}, unsureText},
		"a neighbour whose status port is silent":     {two, 0, q(48, 0), hw(48, 24), policy.Host{Cores: 48, CoresSource: "quota"}, ""},
		"nothing is known":                            {two, 0, q(0, 0), nil, policy.Host{}, unknownText},
		"the machine is known but not what TiKV uses": {one, 0, q(0, 0), hw(0, 48), policy.Host{}, unknownText},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := load(t, cluster.Sources{
				PD:        fakePD{stores: tc.stores},
				HostCores: map[string]float64{"a": tc.configured},
				Quota:     quotas(tc.quotas),
				Hardware:  hardware(tc.hardware),
			})
			tc.want.Name = "a"
			if diff := cmp.Diff([]policy.Host{tc.want}, c.Hosts); diff != "" {
				t.Errorf("host differs (-want +got):\n%s", diff)
			}
			var want []string
			if tc.warning != "" {
				want = []string{tc.warning}
			}
			if diff := cmp.Diff(want, c.Warnings); diff != "" {
				t.Errorf("warnings differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInstancesAreGroupedByAddressAndLabelsAreAHint(t *testing.T) {
	stores := []policy.Store{tikv(1, "192.0.2.1", 0), tikv(2, "192.0.2.1", 1), tikv(3, "192.0.2.2", 0), tikv(4, "192.0.2.3", 0)}
	stores[0].Labels = map[string]string{"host": "tikv01"}
	stores[1].Labels = map[string]string{"host": "an old name"}
	stores[2].Labels = map[string]string{"host": "node-7"}
	stores[3].Labels = map[string]string{"host": "node-7"}
	c := load(t, cluster.Sources{PD: fakePD{stores: stores}, HostCores: map[string]float64{"192.0.2.1": 16, "192.0.2.2": 16, "192.0.2.3": 16}})
	var names []string
	for _, h := range c.Hosts {
		names = append(names, h.Name)
	}
	if diff := cmp.Diff([]string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, names); diff != "" {
		t.Errorf("hosts differ (-want +got):\n%s", diff)
	}
	want := []string{"several addresses carry one host label; they count as different hosts, though they may share a machine's CPU: node-7 (192.0.2.2, 192.0.2.3)"}
	if diff := cmp.Diff(want, c.Warnings); diff != "" {
		t.Errorf("warnings differ (-want +got):\n%s", diff)
	}
}
