package br

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/brctl/brctl/internal/proc"
	"github.com/brctl/brctl/pkg/policy"
)

// Hold returns the service id under which a br that is gone holds GC, for a
// caller that died before it learned it: from br's log, else from the
// checkpoint at the target; "" when neither names one. br registers its hold
// right after it has logged it.
func (e *Engine) Hold(ctx context.Context, inv policy.Invocation) (string, error) {
	id, err := within(ctx, e.config.Timeout, func(context.Context) (string, error) { return holdInLog(inv.LogFile) })
	if err != nil || id != "" {
		return id, err
	}
	cp, err := e.ReadCheckpoint(ctx, inv.StorageURL)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return cp.ServiceID, err
}

func holdInLog(path string) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read br's log: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	parser := NewParser(func(policy.AttemptEvent) {})
	lines := proc.NewLineSplitter(0, func(line []byte) { parser.Line(FromLog, line) })
	if _, err := io.Copy(lines, f); err != nil {
		return "", fmt.Errorf("read br's log: %w", err)
	}
	return parser.Report().ServiceSafePoint, nil
}
