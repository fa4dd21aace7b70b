package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/brctl/brctl/internal/app"
)

// display shows a run while it goes on. Its methods are called from one
// goroutine at a time.
type display interface {
	update(app.Status)
	warn(text string)
	close()
}

// newDisplay picks a live bar for terminals, plain lines otherwise.
func newDisplay(s streams) display {
	if f, ok := s.err.(*os.File); ok {
		// A terminal that does not know its size has no room to draw in.
		if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 && height > 0 {
			return &liveDisplay{out: s.err}
		}
	}
	return &lineDisplay{out: s.err}
}

// told is what was said last of a run, so that nothing is said twice.
type told struct{ step, note string }

// news returns the lines about s that are worth saying now.
func (t *told) news(s app.Status) []string {
	var lines []string
	if step := s.Run.Step.Doing(); step != t.step {
		t.step = step
		if step != "" {
			lines = append(lines, step)
		}
	}
	if s.Note != "" && s.Note != t.note {
		t.note = s.Note
		lines = append(lines, s.Note)
	}
	return lines
}

// linesEvery is how often a log without a terminal gets a progress line.
const linesEvery = 10 * time.Second

// lineDisplay prints a line per event, and progress now and then.
type lineDisplay struct {
	out     io.Writer
	told    told
	printed time.Time
}

func (d *lineDisplay) update(s app.Status) {
	for _, text := range d.told.news(s) {
		d.line(text)
	}
	if s.Progress.Ratio > 0 && time.Since(d.printed) >= linesEvery {
		d.printed = time.Now()
		d.line(progressText(s))
	}
}

func (d *lineDisplay) warn(text string) { d.line("warning: " + text) }
func (d *lineDisplay) close()           {}

func (d *lineDisplay) line(text string) {
	fmt.Fprintf(d.out, "%s  %s\n", time.Now().Format("15:04:05"), text)
}

func progressText(s app.Status) string {
	parts := []string{fmt.Sprintf("%s %.1f %%", s.Progress.Step, s.Progress.Ratio*100)}
	if s.Rate > 0 {
		parts = append(parts, fmt.Sprintf("%.0f MB/s", s.Rate))
	}
	for _, h := range s.Hosts {
		parts = append(parts, hostText(h))
	}
	if s.GCHold > 0 {
		parts = append(parts, "GC held "+span(s.GCHold))
	}
	if s.ETA > 0 {
		parts = append(parts, "ETA "+etaText(s.ETA))
	}
	return strings.Join(parts, ", ")
}

func hostText(h app.HostStatus) string {
	text := h.Host + ": ? threads"
	if h.Known {
		text = fmt.Sprintf("%s: %d threads", h.Host, h.Threads)
	}
	if h.Silent > 0 {
		text += fmt.Sprintf(" (%d TiKV not answering)", h.Silent)
	}
	switch {
	case !h.CPUKnown:
		return text
	case h.Cores > 0:
		return fmt.Sprintf("%s, CPU %.0f %% (backup %.0f %%)", text, 100*h.TotalCPU/h.Cores, 100*h.BackupCPU/h.Cores)
	default:
		return fmt.Sprintf("%s, %.1f cores (backup %.1f)", text, h.TotalCPU, h.BackupCPU)
	}
}

func etaText(d time.Duration) string {
	if d < time.Minute {
		return "a minute or less"
	}
	return span(d)
}
