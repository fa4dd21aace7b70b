// Package plant models how the backup threads of TiKV really follow
// backup.num-threads, so that the lab's stand-in can be steered, can lag and
// can be misunderstood in the same ways as the real thing.
//
// The model is a pure discrete-event simulation. Time is a parameter, a
// time.Duration since an epoch that the caller chooses; there is no clock, no
// goroutine, no randomness and no I/O. The same calls give the same answers.
//
// A [Host] has cores and a business load. It carries stores, and a [Store] is
// one TiKV process: permits, worker loops, a keeper and pools of OS threads.
// The caller feeds requests, settings and load, asks [Host.NextEvent] when
// something will happen next, and collects what happened from [Host.Advance].
//
// Nothing here is measured on a running TiKV. The rules were read in TiKV's
// source (components/backup: endpoint, softlimit and utils; and
// components/tikv_util: resizable_threadpool) and are restated beside the code
// that follows them. What is left out is listed in the README next to this
// file.
//
// A Host and everything on it belongs to one goroutine at a time: callers lock.
//
// Units: times and CPU time are time.Duration, sizes are bytes, rates are bytes
// per second per thread, loads are shares of a host's cores (0.25 = 25 %).
package plant
