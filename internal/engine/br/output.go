package br

import (
	"fmt"
	"os"
	"sync"
)

// maxOutput bounds the file that keeps what br printed, in bytes. br prints a
// few lines; a panic prints the stacks of all goroutines.
const maxOutput = 16 << 20

// outputFile keeps what br printed, redacted. A fault of the file is kept and
// reported once at the end: it must not end a backup.
type outputFile struct {
	redact func(string) string

	mu   sync.Mutex
	file *os.File
	left int
	err  error
}

func openOutput(path string, redact func(string) string) (*outputFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open output file: %w", err)
	}
	return &outputFile{file: f, left: maxOutput, redact: redact}, nil
}

func (o *outputFile) line(line []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil || o.left <= 0 {
		return
	}
	text := o.redact(string(line)) + "\n"
	if o.left -= len(text); o.left <= 0 {
		text = "… the rest is not kept\n"
	}
	_, o.err = o.file.WriteString(text)
}

func (o *outputFile) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.file.Close(); o.err == nil {
		o.err = err
	}
	if o.err != nil {
		return fmt.Errorf("keep br's output: %w", o.err)
	}
	return nil
}
