// Package proc runs one external process and answers for it until it is gone.
//
// It owns the process and everything that process starts: the child leads a
// session and a process group of its own, its output is read to the end
// whatever its size, it is stopped by TERM to the group and by KILL after a
// grace time, and when the leader has ended, what it left behind in its session
// is killed and reported. A process that not even KILL ends is given up and
// named, so that nobody waits for ever. A Ref names a process across our own
// death, so that a later life of the program can tell whether it still runs and
// end it.
//
// It knows nothing of what it runs: no arguments, no meaning of output. It
// reads /proc and therefore works on Linux only.
package proc
