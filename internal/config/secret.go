package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// PasswordSource says where a password is read, without being it; it may be
// stored and printed.
type PasswordSource struct {
	File       string `json:"file,omitempty"`
	Env        string `json:"env,omitempty"`
	Credential string `json:"credential,omitempty"`
}

// PasswordSource returns where t's password is read.
func (t TiDB) PasswordSource() PasswordSource {
	return PasswordSource{File: t.PasswordFile, Env: t.PasswordEnv, Credential: t.PasswordCredential}
}

// Read returns the password, or "" when no source is named. One trailing line
// break is dropped, as editors add it. A source that is named but missing is an
// error: an empty password would be tried against production instead.
func (p PasswordSource) Read() (Secret, error) {
	switch {
	case p.File != "":
		return readSecretFile(p.File)
	case p.Env != "":
		value, ok := os.LookupEnv(p.Env)
		if !ok {
			return "", fmt.Errorf("read password: environment variable %s is not set", p.Env)
		}
		return Secret(value), nil
	case p.Credential != "":
		dir := os.Getenv("CREDENTIALS_DIRECTORY")
		if dir == "" {
			return "", errors.New("read password: systemd passed no credentials; want LoadCredential= in the unit")
		}
		return readSecretFile(filepath.Join(dir, filepath.Base(p.Credential)))
	}
	return "", nil
}

func readSecretFile(path string) (Secret, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read password: %w", err)
	}
	return Secret(strings.TrimRight(string(data), "\r\n")), nil
}
