// Package logkey holds the keys of brctl's log, so that each is spelt once.
package logkey

// The keys.
const (
	Cluster  = "cluster"
	Kind     = "kind" // of a run's event
	RunID    = "run_id"
	Schedule = "schedule"
	Text     = "text" // what happened, for people
)
