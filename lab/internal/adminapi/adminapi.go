// Package adminapi is what lab ctl and a running lab say to each other: JSON over HTTP on a loopback port. Requests are
// POST with a JSON body, reads are GET; an error is {"error": "..."} with a status of 400 or 500.
package adminapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/brctl/brctl/lab/internal/standin"
)

// Paths of the API.
const (
	PathEvents           = "/events"
	PathSettings         = "/settings"
	PathLoad             = "/load"
	PathCondition        = "/store/condition"
	PathConfigMode       = "/store/config-mode"
	PathRestartStore     = "/store/restart"
	PathOfflineStore     = "/store/offline"
	PathRemoveStore      = "/store/remove"
	PathAddStore         = "/store/add"
	PathTarget           = "/target"
	PathPD               = "/pd"
	PathTiDB             = "/tidb"
	PathGCSafePoint      = "/gc-safepoint"
	PathServiceSafePoint = "/service-safepoint"
)

// Load asks for a business load on a host.
type Load struct {
	Host   string          `json:"host"`
	Points []standin.Point `json:"points"`
}

// Store names a store, and for some paths what to make of it.
type Store struct {
	ID    uint64 `json:"id"`
	State string `json:"state,omitempty"`
}

// Target says whether the backup target is full.
type Target struct {
	Full bool `json:"full"`
}

// Process asks for an action on a child process.
type Process struct {
	Action string `json:"action"`
	Member string `json:"member,omitempty"` // of PD
}

// SafePoint asks for a GC safepoint or a service safepoint; 0 means now. It is also the answer: where the GC safepoint
// is, or the smallest of all service safepoints.
type SafePoint struct {
	ServiceID string `json:"service_id,omitempty"`
	TTL       int64  `json:"ttl,omitempty"` // seconds
	SafePoint uint64 `json:"safe_point"`
}

// Settings are the values in force at one store.
type Settings struct {
	StoreID  uint64         `json:"store_id"`
	Instance string         `json:"instance"`
	Values   map[string]any `json:"values"`
}

// Client talks to a running lab.
type Client struct {
	Address string
}

// Get reads a path into a value.
func (c Client) Get(ctx context.Context, path string, into any) error {
	return c.call(ctx, http.MethodGet, path, nil, into)
}

// Post sends a request; into may be nil.
func (c Client) Post(ctx context.Context, path string, request, into any) error {
	return c.call(ctx, http.MethodPost, path, request, into)
}

func (c Client) call(ctx context.Context, method, path string, request, into any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+c.Address+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("ask the lab: %w", err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("ask the lab: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return answered(resp.Status, data)
	}
	if into == nil {
		return nil
	}
	if err := decode(data, into); err != nil {
		return fmt.Errorf("parse the lab's answer: %w", err)
	}
	return nil
}

// decode keeps the numbers of settings, which are of type any, as they are written: as a float64 a large integer would
// be printed with an exponent.
func decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into)
}

func answered(status string, data []byte) error {
	var e struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(data, &e) == nil && e.Error != "" {
		return errors.New(e.Error)
	}
	return fmt.Errorf("lab answered %s: %s", status, bytes.TrimSpace(data))
}
