package br

import (
	"context"
	"fmt"
	"slices"

	"github.com/brctl/brctl/internal/proc"
	"github.com/brctl/brctl/pkg/policy"
)

// Find returns every br that this or an earlier life of ours started for the run
// with this storage URL and that still runs. It is for the moment between the
// fork and the record of it, in which a death of ours leaves a br that no book
// knows; Recover ends what is found.
//
// What is looked for are processes of our own user that lead a session, as those
// that Start starts do, and whose arguments say backup and, as two of them,
// --storage and exactly this URL: no two runs share one. A restore from there, or
// a br that somebody runs from a shell, is left alone.
func (e *Engine) Find(ctx context.Context, storageURL string) ([]policy.ChildRef, error) {
	if _, err := e.localPath(storageURL); err != nil {
		return nil, fmt.Errorf("look for br of this run: %w", err)
	}
	refs, err := within(ctx, e.config.Timeout, func(context.Context) ([]proc.Ref, error) {
		return proc.Find(func(argv []string) bool { return backsUpTo(argv, storageURL) })
	})
	if err != nil {
		return nil, fmt.Errorf("look for br of this run: %w", err)
	}
	var found []policy.ChildRef
	for _, ref := range refs {
		found = append(found, childRef(ref))
	}
	return found, nil
}

// backsUpTo reports whether the arguments are those of a backup to the URL, as
// Prepare writes them; a wrapper may stand before them.
func backsUpTo(argv []string, storageURL string) bool {
	command := slices.Index(argv, "backup")
	if command < 0 {
		return false
	}
	args := argv[command:]
	flag := slices.Index(args, "--storage")
	return flag >= 0 && flag+1 < len(args) && args[flag+1] == storageURL
}
