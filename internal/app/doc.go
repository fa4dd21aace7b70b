// Package app wires brctl: it is the only package that knows every concrete
// type, and turns a configuration into clients, a runner and results. The
// command line calls it; it prints nothing.
package app
