package policy

import "strconv"

// SettingsFor returns the settings that plan gives to one store, in the order
// in which they are sent. T is clamped to [1, floor(cores)] of the instance:
// TiKV answers a larger value with OK and silently uses its default.
func SettingsFor(plan Plan, s Store) []Setting {
	var out []Setting
	want := func(item, value string) {
		out = append(out, Setting{SettingKey: SettingKey{Instance: s.Address, Name: item}, StoreID: s.ID, Want: value})
	}
	want(ItemNumThreads, strconv.Itoa(clampThreads(plan.NumThreads, s.Cores)))
	if plan.BatchSize > 0 {
		want(ItemBatchSize, strconv.Itoa(plan.BatchSize))
	}
	if plan.RefreshInterval > 0 {
		want(ItemRefreshInterval, formatTiKVDuration(plan.RefreshInterval))
	}
	return out
}

// clampThreads bounds T by what an instance can be set to; cores 0 means
// unknown and bounds nothing.
func clampThreads(t int, cores float64) int {
	if cores > 0 {
		t = min(t, int(cores))
	}
	return max(1, t)
}
