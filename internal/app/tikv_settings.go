package app

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/brctl/brctl/pkg/policy"
)

const itemAutoTune = "backup.enable-auto-tune"

// readTiKVSettings fills in what the TiKVs of c have of those backup settings
// that a plan may leave alone: they decide how long a cut takes, and whether
// TiKV itself runs fewer threads.
func (s *session) readTiKVSettings(ctx context.Context, c *policy.Cluster) {
	byAddress := map[string]*policy.Store{}
	var keys []policy.SettingKey
	for i := range c.Stores {
		store := &c.Stores[i]
		if !store.BackedUp() || store.Silent {
			continue
		}
		byAddress[store.Address] = store
		for _, name := range []string{policy.ItemBatchSize, policy.ItemRefreshInterval, itemAutoTune} {
			keys = append(keys, policy.SettingKey{Instance: store.Address, Name: name})
		}
	}
	unread := 0
	for _, r := range s.sql.Read(ctx, keys) {
		if store := byAddress[r.Instance]; store == nil || !takeReading(c, store, r) {
			unread++
		}
	}
	if unread > 0 {
		c.BatchSize, c.RefreshInterval = 0, 0
		c.Warnings = append(c.Warnings, fmt.Sprintf("%d backup settings of TiKV could not be read: its defaults are assumed for the lag of a cut", unread))
	}
}

// takeReading reports whether r says something.
func takeReading(c *policy.Cluster, store *policy.Store, r policy.Reading) bool {
	if !r.Known {
		return false
	}
	switch r.Name {
	case policy.ItemBatchSize:
		n, err := strconv.Atoi(r.Value)
		c.BatchSize = max(c.BatchSize, n)
		return err == nil
	case policy.ItemRefreshInterval:
		d, err := time.ParseDuration(r.Value)
		c.RefreshInterval = max(c.RefreshInterval, d)
		return err == nil
	default:
		store.AutoTuneOff = r.Value == "false"
		return true
	}
}
