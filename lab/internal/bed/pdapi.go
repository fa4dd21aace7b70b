package bed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

func (b *Bed) pdGet(ctx context.Context, path string, into any) error {
	return b.pdCall(ctx, http.MethodGet, path, nil, into)
}

func (b *Bed) pdPost(ctx context.Context, path string, body any) error {
	return b.pdCall(ctx, http.MethodPost, path, body, nil)
}

// pdLeader asks one of these members after the other for the name of the leader.
func pdLeader(ctx context.Context, endpoints ...string) (string, error) {
	var leader struct {
		Name string `json:"name"`
	}
	if err := call(ctx, endpoints, http.MethodGet, "/pd/api/v1/leader", nil, &leader); err != nil {
		return "", err
	}
	if leader.Name == "" {
		return "", errors.New("PD has no leader yet")
	}
	return leader.Name, nil
}

func (b *Bed) pdCall(ctx context.Context, method, path string, body, into any) error {
	return call(ctx, b.info.PDEndpoints, method, path, body, into)
}

// call asks one member after the other, for some may be down; the error is that of the last.
func call(ctx context.Context, endpoints []string, method, path string, body, into any) error {
	payload, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode PD request: %w", err)
	}
	for _, endpoint := range endpoints {
		var data []byte
		if data, err = request(ctx, method, endpoint+path, payload); err != nil {
			continue
		}
		if into == nil {
			return nil
		}
		if err := json.Unmarshal(data, into); err != nil {
			return fmt.Errorf("parse PD's answer to %s: %w", path, err)
		}
		return nil
	}
	return err
}

func request(ctx context.Context, method, url string, payload []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(payload))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask PD: %w", err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("ask PD: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask PD for %s: %s: %s", url, resp.Status, bytes.TrimSpace(data))
	}
	return data, nil
}
