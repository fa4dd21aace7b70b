package standin

import (
	"fmt"
	"net/http"
)

// getMetrics is a page of what the plant knows.
func (s *Store) getMetrics(w http.ResponseWriter, _ *http.Request) {
	s.machine.mu.Lock()
	soft, pool := s.plant.SoftLimit(), s.plant.PoolGauge()
	s.machine.mu.Unlock()
	fmt.Fprintf(w, "# TYPE tikv_backup_softlimit gauge\ntikv_backup_softlimit %d\n", soft)
	fmt.Fprintf(w, "# TYPE tikv_backup_thread_pool_size gauge\ntikv_backup_thread_pool_size %d\n", pool)
}
