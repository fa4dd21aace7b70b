package bed

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/brctl/brctl/lab/internal/labinfo"
)

// productConfig is a configuration of the product for this lab. Root has no password, so none is named.
const productConfig = `# Written by the lab at every start.
state: {dir: %[1]q}
log: {level: info, format: console}
clusters:
  - name: lab
    pd: {endpoints: [%[2]s]}
    tidb: {endpoints: [%[3]q], user: root}
    br: {path: %[4]q}
    model: {mb_per_s_per_thread: %[5]g}
storage:
  - {name: backups, url: %[6]q, medium: nas}
schedules:
  - {name: nightly, cluster: lab, storage: backups, cron: "0 1 * * *", timezone: UTC}
`

// publish writes the files that others wait for; lab.json comes last and means that all is ready.
func (b *Bed) publish(ctx context.Context, _ *errgroup.Group) error {
	endpoints := make([]string, len(b.info.PDEndpoints))
	for i, e := range b.info.PDEndpoints {
		endpoints[i] = fmt.Sprintf("%q", e)
	}
	config := fmt.Sprintf(productConfig, b.path("state"), strings.Join(endpoints, ", "), b.info.SQLAddress,
		b.info.BRPath, b.opts.Shape.MBpsPerThread, "local://"+b.path("backups"))
	if err := labinfo.WriteFile(b.path("brctl.yaml"), []byte(config)); err != nil {
		return err
	}
	if err := b.cluster.Report(ctx); err != nil {
		return err
	}
	b.cluster.BeginDelays()
	return b.info.Write(b.opts.Dir)
}
