// Package labinfo is lab.json: how a running lab says where everything is.
package labinfo

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/brctl/brctl/lab/internal/shape"
)

// FileName is the file in a lab's directory; it exists while the lab runs.
const FileName = "lab.json"

// Info is the content of lab.json.
type Info struct {
	PDEndpoints       []string    `json:"pd_endpoints"`
	SQLAddress        string      `json:"sql_address"`
	SQLHost           string      `json:"sql_host"`
	TiDBStatusAddress string      `json:"tidb_status_address"`
	BRPath            string      `json:"br_path"`
	S3Address         string      `json:"s3_address"`
	S3Bucket          string      `json:"s3_bucket"`
	S3AccessKey       string      `json:"s3_access_key"`
	S3SecretKey       string      `json:"s3_secret_key"`
	AdminAddress      string      `json:"admin_address"`
	ClusterID         uint64      `json:"cluster_id"`
	Stores            []Store     `json:"stores"`
	Shape             shape.Shape `json:"shape"`
}

// Store is one TiKV stand-in.
type Store struct {
	ID            uint64 `json:"id"`
	Address       string `json:"address"`
	StatusAddress string `json:"status_address"`
	Host          string `json:"host"`
}

// Write puts lab.json in place in one step, so that a reader finds all of it or nothing.
func (i Info) Write(dir string) error {
	data, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", FileName, err)
	}
	return WriteFile(filepath.Join(dir, FileName), append(data, '\n'))
}

// Read reads the lab.json of a directory.
func Read(dir string) (Info, error) {
	var i Info
	data, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		return i, fmt.Errorf("read %s (is the lab up?): %w", FileName, err)
	}
	if err := json.Unmarshal(data, &i); err != nil {
		return i, fmt.Errorf("parse %s: %w", FileName, err)
	}
	return i, nil
}

// WriteFile replaces a file in one step.
func WriteFile(file string, data []byte) error {
	tmp := file + ".tmp"
	if err := os.WriteFile(tmp, data, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := os.Rename(tmp, file); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
