// Package events remembers what the stand-ins saw, so that a test can check what a product really did to the cluster.
package events

import (
	"slices"
	"sync"
	"time"
)

// Kinds of events.
const (
	ConfigChange  = "config_change"  // SET CONFIG reached the instance and took effect
	ConfigRefused = "config_refused" // SET CONFIG reached the instance and was answered with an error
	BackupRequest = "backup_request" // br opened a stream
	StreamEnd     = "stream_end"     // the stream is over, at whichever end
	StoreState    = "store_state"    // the lab changed the condition of a stand-in
)

// Event is one thing that happened to one stand-in.
type Event struct {
	Time     time.Time `json:"time"`
	Kind     string    `json:"kind"`
	StoreID  uint64    `json:"store_id"`
	Instance string    `json:"instance"`

	*Config `json:",omitempty"`
	*Stream `json:",omitempty"`
	State   string `json:"state,omitempty"`
}

// Config is the part of config_change and config_refused.
type Config struct {
	Item      string `json:"item"`
	Value     any    `json:"value"` // as asked
	Effective any    `json:"effective"`
	Persisted bool   `json:"persisted"`
	Refusal   string `json:"refusal,omitempty"`
}

// Stream is the part of backup_request and stream_end.
type Stream struct {
	StreamID         int    `json:"stream_id"`
	SubRanges        int    `json:"sub_ranges"`
	Regions          int    `json:"regions"` // virtual regions that this store answers for
	Compression      string `json:"compression"`
	CompressionLevel int32  `json:"compression_level"`
	RateLimit        uint64 `json:"rate_limit"`
	Concurrency      uint32 `json:"concurrency"`  // the field of the request; br 8.x always sends 4
	OpenStreams      int    `json:"open_streams"` // of this store, this one included: br's --concurrency shows here
	NumThreads       int    `json:"num_threads"`
	EndVersion       uint64 `json:"end_version"`
	Answered         int    `json:"answered"` // responses sent, for stream_end
	Outcome          string `json:"outcome,omitempty"`
}

// Recorder keeps events in order. It works in memory: a restart of the lab forgets them.
type Recorder struct {
	mu     sync.Mutex
	events []Event
}

// Add records an event and stamps it.
func (r *Recorder) Add(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Time = time.Now().UTC()
	r.events = append(r.events, e)
}

// All is a copy of everything recorded.
func (r *Recorder) All() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}
