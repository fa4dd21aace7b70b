package br

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// RunURL returns the storage URL of one run below base. It cannot repeat: the
// time is UTC, so no hour comes twice, and the run id is unique; two runs that
// start in the same second differ. The time stands first, so that a listing is
// in order.
func RunURL(base string, at time.Time, runID string) string {
	return strings.TrimRight(base, "/") + "/full-" + at.UTC().Format("20060102T150405Z") + "-" + runID
}

// localPath returns the directory that a storage URL names on this host.
// local://, file:// and a bare absolute path are taken, in br's own reading of
// them. No error text repeats the URL: it may hold a secret.
func (e *Engine) localPath(storageURL string) (string, error) {
	if storageURL == "" {
		return "", errors.New("storage URL is empty")
	}
	if e.redactor.hasSecret(storageURL) {
		return "", errors.New("storage URL carries credentials: take them out and name them under credential_env, " +
			"so that they reach br by its environment and not by its arguments, logs and checkpoint")
	}
	u, err := url.Parse(strings.ReplaceAll(storageURL, "+", "%2B")) // as br does
	if err != nil {
		return "", errors.New("storage URL is not a valid URL")
	}
	switch u.Scheme {
	case "local", "file":
	case "":
		u = &url.URL{Path: storageURL}
	default:
		return "", fmt.Errorf("storage scheme %q is not supported yet: give local:///path of a directory that every TiKV host and this host share", u.Scheme)
	}
	if u.Host != "" || u.RawQuery != "" || u.Fragment != "" || !filepath.IsAbs(u.Path) {
		return "", errors.New("storage URL is not of the form local:///absolute/path")
	}
	return filepath.Clean(u.Path), nil
}
