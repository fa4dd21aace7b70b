// Package brtest is a fake br for tests: a real process that behaves like br
// where brctl can see it. It takes br's arguments, writes br's log, draws br's
// progress bar on a terminal, refuses a used path, keeps a checkpoint when it is
// interrupted, resumes from it, and leaves a backup that reads like br's.
//
// It does not talk to a cluster: no PD, no service safepoint in PD, no TiKV; the
// data files hold nothing. Its checkpoint holds no progress.
//
// The fake is the test binary itself, started in another role. A package that
// uses it calls Main from its TestMain and New for each kind of br it needs.
package brtest
