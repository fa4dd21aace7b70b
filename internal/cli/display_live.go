package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/brctl/brctl/internal/app"
)

const (
	barSteps = 10000
	barWidth = 40
	// hostLines is how many hosts are shown below the bar; a terminal has few
	// rows, and the rest is summed up.
	hostLines = 8
)

// liveDisplay draws a bar with a line per host below it, and lets what happens
// scroll by above it.
type liveDisplay struct {
	out      io.Writer
	progress *mpb.Progress // nil while no bar is drawn
	bars     []*mpb.Bar    // the bar itself, then a line per host
	told     told

	mu   sync.Mutex // lines are drawn by another goroutine
	last app.Status
}

func (d *liveDisplay) update(s app.Status) {
	if s.Run.Step != app.StepBackup {
		d.finish()
	}
	d.remember(s)
	for _, text := range d.told.news(s) {
		d.line(text)
	}
	if s.Run.Step != app.StepBackup {
		return
	}
	if s := d.snapshot(); s.Progress.Ratio > 0 {
		d.draw(s)
	}
}

// remember keeps what is to be drawn; a status that says nothing of progress or
// hosts leaves them as they were.
func (d *liveDisplay) remember(s app.Status) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.Run.Step == app.StepBackup && s.Progress.Ratio == 0 {
		s.Progress, s.Rate, s.ETA, s.GCHold = d.last.Progress, d.last.Rate, d.last.ETA, d.last.GCHold
	}
	if len(s.Hosts) == 0 {
		s.Hosts = d.last.Hosts
	}
	d.last = s
}

func (d *liveDisplay) snapshot() app.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

func (d *liveDisplay) draw(s app.Status) {
	if d.progress == nil {
		d.progress = mpb.New(mpb.WithOutput(d.out), mpb.WithWidth(barWidth), mpb.WithRefreshRate(250*time.Millisecond))
		d.bars = append(d.bars, d.progress.AddBar(barSteps,
			mpb.PrependDecorators(d.text(func(s app.Status) string { return s.Progress.Step + " " })),
			mpb.AppendDecorators(d.text(func(s app.Status) string { return " " + barText(s) })),
		))
	}
	for len(d.bars)-1 < min(len(s.Hosts), hostLines) {
		d.addHostLine(len(d.bars) - 1)
	}
	d.bars[0].SetCurrent(int64(s.Progress.Ratio * (barSteps - 1)))
}

// addHostLine adds the line of the i-th host: a bar that shows text only.
func (d *liveDisplay) addHostLine(i int) {
	line := d.text(func(s app.Status) string { return hostLine(s.Hosts, i) })
	d.bars = append(d.bars, d.progress.New(0, mpb.NopStyle(), mpb.PrependDecorators(line)))
}

// hostLine is the i-th line below the bar. The last one stands for all hosts
// that have none.
func hostLine(hosts []app.HostStatus, i int) string {
	switch {
	case i >= len(hosts):
		return ""
	case i == hostLines-1 && len(hosts) > hostLines:
		return fmt.Sprintf("  … and %d more hosts", len(hosts)-i)
	}
	return "  " + hostText(hosts[i])
}

func (d *liveDisplay) text(of func(app.Status) string) decor.Decorator {
	return decor.Any(func(decor.Statistics) string { return of(d.snapshot()) })
}

func barText(s app.Status) string {
	text := fmt.Sprintf("%5.1f %%", s.Progress.Ratio*100)
	if s.Rate > 0 {
		text += fmt.Sprintf("  %.0f MB/s", s.Rate)
	}
	if s.GCHold > 0 {
		text += "  GC held " + span(s.GCHold)
	}
	if s.ETA > 0 {
		text += "  ETA " + etaText(s.ETA)
	}
	return text
}

// finish takes the bar away; what scrolled by stays.
func (d *liveDisplay) finish() {
	if d.progress == nil {
		return
	}
	for _, bar := range d.bars {
		bar.Abort(true)
	}
	d.progress.Wait()
	d.progress, d.bars = nil, nil
}

func (d *liveDisplay) line(text string) {
	line := fmt.Sprintf("%s  %s\n", time.Now().Format("15:04:05"), text)
	if d.progress != nil {
		_, _ = d.progress.Write([]byte(line)) // a terminal that is gone is no reason to stop
		return
	}
	fmt.Fprint(d.out, line)
}

func (d *liveDisplay) warn(text string) { d.line("warning: " + text) }
func (d *liveDisplay) close()           { d.finish() }
