package config

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Absolute makes every path of c absolute, against the working directory. What
// is put into the settings journal must be found again from anywhere.
func (c *Config) Absolute() error {
	paths := []*string{&c.State.Dir}
	for i := range c.Clusters {
		cl := &c.Clusters[i]
		paths = append(paths, &cl.TiDB.PasswordFile)
		for _, t := range []*TLS{&cl.PD.TLS, &cl.TiDB.TLS, &cl.TiKV.TLS} {
			paths = append(paths, &t.CA, &t.Cert, &t.Key)
		}
		if strings.ContainsRune(cl.BR.Path, filepath.Separator) { // a bare name is looked up in PATH
			paths = append(paths, &cl.BR.Path)
		}
	}
	for _, p := range paths {
		if *p == "" {
			continue
		}
		abs, err := filepath.Abs(*p)
		if err != nil {
			return fmt.Errorf("make %s absolute: %w", *p, err)
		}
		*p = abs
	}
	return nil
}
