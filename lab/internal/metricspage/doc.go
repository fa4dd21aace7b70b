// Package metricspage writes the Prometheus text page that a TiKV 8.5 serves at
// /metrics, as far as a backup runner reads it, for the lab's stand-in.
//
// A [Snapshot] is what one page says; it renders itself and nothing else. A
// [Store] keeps what accumulates between scrapes: counters, histograms and the
// threads of the process, whose ids come and go. It is safe for concurrent use
// and has no clock: callers say what time it is.
//
// Names, types, help texts, labels and bucket layouts were read in TiKV's source
// (components/backup metrics, src/server metrics, tikv_util threads_linux and
// process_linux). Of the hundreds of other families a real page has, [Filler]
// supplies lookalikes up to a wanted size; their values mean nothing.
package metricspage
