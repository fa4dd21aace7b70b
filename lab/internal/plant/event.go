package plant

import "time"

// EventKind tells the events of [Host.Advance] apart.
type EventKind int

const (
	// RegionDone: a region has been processed.
	RegionDone EventKind = iota
	// RequestEnded: the last worker loop of a request is gone.
	RequestEnded
)

// Event is something that happened on a host.
type Event struct {
	At      time.Duration
	Kind    EventKind
	Request *Request
	Region  int // index in the request, for RegionDone
}
