package tidbcfg

import "golang.org/x/sync/errgroup"

// perInstance calls work once for each instance with the indexes that belong to
// it, in their order. Instances run in parallel, at most c.cfg.Parallel at once;
// it returns when all are done.
func (c *Client) perInstance(n int, instanceOf func(int) string, work func(instance string, indexes []int)) {
	var order []string
	groups := make(map[string][]int)
	for i := range n {
		instance := instanceOf(i)
		if _, seen := groups[instance]; !seen {
			order = append(order, instance)
		}
		groups[instance] = append(groups[instance], i)
	}
	var g errgroup.Group
	g.SetLimit(c.cfg.Parallel)
	for _, instance := range order {
		g.Go(func() error {
			work(instance, groups[instance])
			return nil
		})
	}
	_ = g.Wait() // work reports per index, never as an error
}
