package br

import (
	"github.com/brctl/brctl/internal/proc"
	"github.com/brctl/brctl/pkg/policy"
)

// Judge opens the classifier to tests: the outcome of a text, without a child.
func Judge(r Report, res proc.Result) (policy.Outcome, bool) { return newClassifier().outcome(r, res) }

// JudgeAt is the verdict on an attempt that ended so, and said nothing, with a
// look at its target.
func (e *Engine) JudgeAt(storageURL string, res proc.Result) policy.Outcome {
	a := &Attempt{engine: e, inv: policy.Invocation{StorageURL: storageURL}, redactor: e.redactor,
		parser: NewParser(func(policy.AttemptEvent) {})}
	return a.judge(res)
}

// Follower opens the log follower to tests.
type Follower = follower

// Follow is the constructor of Follower.
func Follow(path string, emit func([]byte)) (*Follower, error) { return follow(path, emit) }

// Poll reads what is new.
func (f *follower) Poll() error { return f.poll() }

// Close reads the rest.
func (f *follower) Close() error { return f.close() }
