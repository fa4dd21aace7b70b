package br

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/brctl/brctl/pkg/policy"
)

// TLS names the files with which br reaches PD and TiKV. All paths or none.
type TLS struct {
	CA, Cert, Key string
}

// Spec is what one run of br backup full is made of.
type Spec struct {
	Plan        policy.Plan
	PDEndpoints []string // in the order of the configuration; never sorted, never reordered
	PDTLS       TLS
	StorageURL  string   // of this run alone; see RunURL
	Filters     []string // br's table filters; none means everything
	RunID       string
	LogDir      string // directory on a local disk for br's log and output

	// SendCredentialsToTiKV is br's flag of that name; nil leaves br's default.
	SendCredentialsToTiKV *bool
	// CredentialEnv says for each variable that br is to get where its value is
	// read at every start, never the value.
	CredentialEnv map[string]string
}

// Prepare freezes the invocation of a run. It touches nothing. The same
// invocation serves every attempt of the run: only so can br resume.
func (e *Engine) Prepare(s Spec) (policy.Invocation, error) {
	inv, err := e.prepare(s)
	if err != nil {
		return policy.Invocation{}, fmt.Errorf("prepare br: %w", err)
	}
	return inv, nil
}

func (e *Engine) prepare(s Spec) (policy.Invocation, error) {
	if _, err := e.localPath(s.StorageURL); err != nil {
		return policy.Invocation{}, err
	}
	if s.RunID == "" || s.RunID != filepath.Base(s.RunID) || !filepath.IsAbs(s.LogDir) {
		return policy.Invocation{}, fmt.Errorf("run id %q must be a file name and log directory %q an absolute path", s.RunID, s.LogDir)
	}
	pd, err := pdList(s.PDEndpoints, s.PDTLS)
	if err != nil {
		return policy.Invocation{}, err
	}
	inv := policy.Invocation{
		Engine: Name, Binary: e.config.Binary, StorageURL: s.StorageURL,
		LogFile:       filepath.Join(s.LogDir, s.RunID+".br.log"),
		OutputFile:    filepath.Join(s.LogDir, s.RunID+".br.out"),
		CredentialEnv: maps.Clone(s.CredentialEnv),
	}
	inv.Args = append([]string{"backup", "full", "--pd", pd, "--storage", s.StorageURL}, planArgs(s.Plan)...)
	if s.PDTLS.CA != "" {
		inv.Args = append(inv.Args, "--ca", s.PDTLS.CA)
	}
	if s.PDTLS.Cert != "" {
		inv.Args = append(inv.Args, "--cert", s.PDTLS.Cert, "--key", s.PDTLS.Key)
	}
	for _, f := range s.Filters {
		inv.Args = append(inv.Args, "--filter", f)
	}
	if s.SendCredentialsToTiKV != nil {
		inv.Args = append(inv.Args, "--send-credentials-to-tikv="+strconv.FormatBool(*s.SendCredentialsToTiKV))
	}
	inv.Args = append(inv.Args, "--log-file", inv.LogFile, "--log-level", "info")
	return inv, nil
}

// planArgs renders the plan. Checksum is always said: its default has changed
// between releases. Flags that take effect by their mere presence (a rate limit
// sets concurrency to 1) are left out unless the plan has a value.
func planArgs(p policy.Plan) []string {
	args := []string{"--concurrency", strconv.Itoa(p.Concurrency), "--compression", p.Compression}
	if p.CompressionLevel != nil {
		args = append(args, "--compression-level", strconv.Itoa(*p.CompressionLevel))
	}
	args = append(args, "--checksum="+strconv.FormatBool(p.Checksum))
	if p.RateLimitMBPerS > 0 {
		args = append(args, "--ratelimit", strconv.Itoa(p.RateLimitMBPerS))
	}
	if p.ReplicaReadLabel != "" {
		args = append(args, "--replica-read-label", p.ReplicaReadLabel)
	}
	return args
}

// pdList joins the endpoints as br wants them. br itself decides on TLS by the
// CA and refuses a scheme that contradicts it, so schemes are dropped here and
// the contradiction is said in our words.
func pdList(endpoints []string, tls TLS) (string, error) {
	if len(endpoints) == 0 {
		return "", errors.New("no PD endpoint is given")
	}
	if (tls.Cert == "") != (tls.Key == "") || tls.CA == "" && tls.Cert != "" {
		return "", errors.New("TLS needs a CA, and a certificate only together with its key")
	}
	bare := make([]string, len(endpoints))
	for i, ep := range endpoints {
		scheme, addr, ok := strings.Cut(ep, "://")
		if !ok {
			scheme, addr = "", ep
		}
		addr = strings.TrimRight(addr, "/")
		switch {
		case scheme == "http" && tls.CA != "":
			return "", fmt.Errorf("PD endpoint %s is http, but a CA is configured", addr)
		case scheme == "https" && tls.CA == "":
			return "", fmt.Errorf("PD endpoint %s is https, but no CA is configured", addr)
		case addr == "" || strings.ContainsAny(addr, ", /@"):
			return "", fmt.Errorf("PD endpoint %d is not host:port", i+1)
		}
		bare[i] = addr
	}
	return strings.Join(bare, ","), nil
}
