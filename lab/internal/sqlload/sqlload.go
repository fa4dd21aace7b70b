// Package sqlload is a small closed-loop SQL workload that measures itself: point reads of random rows of the lab's
// tables, one after another in each thread. Its latency follows the contention of the hosts that lead the regions it
// reads, which are all of them in turn.
package sqlload

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// Options say how much load to make.
type Options struct {
	Duration time.Duration
	Threads  int
	Tables   int
	Rows     int
}

// Report is what the clients saw. Latencies are of successful reads.
type Report struct {
	Seconds float64 `json:"seconds"`
	Queries int     `json:"queries"`
	Errors  int     `json:"errors"`
	QPS     float64 `json:"qps"`
	MeanMS  float64 `json:"mean_ms"`
	P50MS   float64 `json:"p50_ms"`
	P95MS   float64 `json:"p95_ms"`
	P99MS   float64 `json:"p99_ms"`
}

// Run loads the database until the time is over or the context ends.
func Run(ctx context.Context, db *sql.DB, o Options) (Report, error) {
	db.SetMaxOpenConns(o.Threads)
	db.SetMaxIdleConns(o.Threads)
	ctx, cancel := context.WithTimeout(ctx, o.Duration)
	defer cancel()
	start := time.Now()
	var group errgroup.Group
	samples := make([][]time.Duration, o.Threads)
	failed := make([]int, o.Threads)
	for i := range o.Threads {
		group.Go(func() (err error) {
			samples[i], failed[i], err = client(ctx, db, o)
			return err
		})
	}
	err := group.Wait()
	errs := 0
	for _, n := range failed {
		errs += n
	}
	return summarize(slices.Concat(samples...), errs, time.Since(start)), err
}

// client is one thread. A query that fails counts as an error and is not repeated; a lab in which nothing succeeds is
// reported with the last error.
func client(ctx context.Context, db *sql.DB, o Options) (samples []time.Duration, failed int, err error) {
	var last error
	for ctx.Err() == nil {
		query := fmt.Sprintf("SELECT v FROM lab.t%03d WHERE id = %d", 1+rand.IntN(o.Tables), 1+rand.IntN(o.Rows))
		var v string
		begin := time.Now()
		err := db.QueryRowContext(ctx, query).Scan(&v)
		switch {
		case err == nil:
			samples = append(samples, time.Since(begin))
		case ctx.Err() == nil:
			failed++
			last = err
		}
	}
	if len(samples) == 0 && last != nil {
		return nil, failed, fmt.Errorf("query: %w", last)
	}
	if len(samples) == 0 {
		return nil, failed, errors.New("no query was answered in time")
	}
	return samples, failed, nil
}

func summarize(samples []time.Duration, failed int, took time.Duration) Report {
	r := Report{Seconds: took.Seconds(), Queries: len(samples), Errors: failed}
	if len(samples) == 0 {
		return r
	}
	slices.Sort(samples)
	var sum time.Duration
	for _, s := range samples {
		sum += s
	}
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	at := func(q float64) float64 { return ms(samples[int(q*float64(len(samples)-1))]) }
	r.QPS = float64(len(samples)) / took.Seconds()
	r.MeanMS, r.P50MS, r.P95MS, r.P99MS = ms(sum)/float64(len(samples)), at(0.5), at(0.95), at(0.99)
	return r
}
