// Package crashpoint ends the process with SIGKILL at a named place, so that
// tests can show what survives it. It does nothing in ordinary builds: the
// places are alive only with the build tag "crashpoints".
//
// BRCTL_CRASH_AT names the place, BRCTL_CRASH_AT=set:3 its third passing.
package crashpoint
