// Package version knows what this build of brctl calls itself.
package version

import "runtime/debug"

// release is set by the linker in released builds.
var release = "dev"

// Info describes a build.
type Info struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
}

// Get returns this build's description.
func Get() Info {
	info := Info{Version: release, Revision: "unknown", Go: "unknown"}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	info.Go = build.GoVersion
	for _, s := range build.Settings {
		if s.Key == "vcs.revision" {
			info.Revision = s.Value
		}
	}
	return info
}
