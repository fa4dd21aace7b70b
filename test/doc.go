// Package test holds the system tests: they drive the built brctl, as its user
// would, against the lab (the real PD, TiDB and br, and a TiKV stand-in; see
// lab/README.md). They need `make build build-crashpoints lab` first and run
// with the build tag "system": `make test-system`.
package test
