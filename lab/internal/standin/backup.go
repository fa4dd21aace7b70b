package standin

import (
	"context"
	"fmt"
	"time"

	backup "github.com/pingcap/kvproto/pkg/brpb"

	"github.com/brctl/brctl/lab/internal/engine"
	"github.com/brctl/brctl/lab/internal/events"
	"github.com/brctl/brctl/lab/internal/shape"
)

// backupService is TiKV's Backup service. A request is answered for the regions that this store leads, one response per
// region and range as TiKV does; a response leaves when the plant has processed the virtual regions behind it.
type backupService struct {
	backup.UnimplementedBackupServer
	store *Store
}

// Backup serves one of the streams that br opens.
func (b *backupService) Backup(req *backup.BackupRequest, stream backup.Backup_BackupServer) error {
	s := b.store
	if req.ClusterId != s.cluster.cfg.PD.GetClusterID(stream.Context()) {
		return stream.Send(&backup.BackupResponse{Error: clusterMismatch(req.ClusterId)})
	}
	work := newWork(s.cluster.cfg.Regions.Pieces(s.place.ID, req.SubRanges), int64(s.cluster.cfg.Shape.RegionSize))
	st := s.openStream(req, len(work.sizes))
	err := b.serve(req, stream, work, st)
	s.closeStream(st, work.answered, err)
	return err
}

func (b *backupService) serve(req *backup.BackupRequest, stream backup.Backup_BackupServer, w *work, st events.Stream) error {
	ctx := stream.Context()
	out, err := newWriter(ctx, b.store, req)
	if err != nil {
		return stream.Send(&backup.BackupResponse{Error: &backup.Error{Msg: err.Error()}})
	}
	defer out.close()
	j := b.store.machine.submit(b.store.plant, w.sizes)
	if j == nil {
		return fmt.Errorf("backup stream %d: store %d is down", st.StreamID, b.store.place.ID)
	}
	defer j.cancel()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-j.notify:
		}
		done, ended := j.news()
		b.store.observeRegions(w, done)
		for _, piece := range w.finish(done) {
			if err := out.pace(ctx, piece.Bytes); err != nil {
				return err
			}
			if err := stream.Send(out.answer(ctx, piece)); err != nil {
				return fmt.Errorf("send backup response: %w", err)
			}
			w.answered++
		}
		if ended {
			return nil
		}
	}
}

// work maps the virtual regions of a request, which the plant processes, to the pieces they stand for.
type work struct {
	pieces   []engine.Piece
	sizes    []int64 // virtual regions, in order
	owner    []int   // the piece of each
	left     []int   // virtual regions of each piece that are not done
	answered int
}

// newWork cuts every piece into regions of at most this size.
func newWork(pieces []engine.Piece, regionSize int64) *work {
	w := &work{pieces: pieces, left: make([]int, len(pieces))}
	for i, p := range pieces {
		for rest := p.Bytes; rest > 0; rest -= regionSize {
			w.sizes = append(w.sizes, min(rest, regionSize))
			w.owner = append(w.owner, i)
			w.left[i]++
		}
	}
	return w
}

// finish takes the regions that are done and returns the pieces that became complete.
func (w *work) finish(regions []int) []engine.Piece {
	var complete []engine.Piece
	for _, r := range regions {
		i := w.owner[r]
		if w.left[i]--; w.left[i] == 0 {
			complete = append(complete, w.pieces[i])
		}
	}
	return complete
}

// observeRegions counts regions on the metrics page with their virtual sizes.
func (s *Store) observeRegions(w *work, regions []int) {
	rate := s.cluster.cfg.Shape.MBpsPerThread * float64(shape.MiB)
	for _, r := range regions {
		size := w.sizes[r]
		s.page.ObserveRange("scan", time.Duration(float64(size)/rate*float64(time.Second)))
		s.page.ObserveRangeSize("write", size)
		s.page.AddScan("write", uint64(max(size/rowSize, 1)), uint64(size))
	}
}

// rowSize is the size of a virtual row, for the count of keys on the metrics page.
const rowSize = 1024

func (s *Store) openStream(req *backup.BackupRequest, regions int) events.Stream {
	s.mu.Lock()
	s.streams++
	open := s.streams
	s.mu.Unlock()
	st := events.Stream{
		StreamID: int(s.cluster.streamIDs.Add(1)), SubRanges: len(req.SubRanges), Regions: regions,
		Compression: req.CompressionType.String(), CompressionLevel: req.CompressionLevel,
		RateLimit: req.RateLimit, Concurrency: req.Concurrency, OpenStreams: open,
		NumThreads: s.settings.Backup().NumThreads, EndVersion: req.EndVersion,
	}
	s.recordStream(events.BackupRequest, st)
	return st
}

func (s *Store) closeStream(st events.Stream, answered int, err error) {
	s.mu.Lock()
	s.streams--
	st.OpenStreams = s.streams
	s.mu.Unlock()
	st.Answered, st.Outcome = answered, "complete"
	if err != nil {
		st.Outcome = err.Error()
	}
	s.recordStream(events.StreamEnd, st)
}

func (s *Store) recordStream(kind string, st events.Stream) {
	e := s.event(kind)
	e.Stream = &st
	s.record(e)
}

func clusterMismatch(got uint64) *backup.Error {
	return &backup.Error{
		Msg: "cluster id mismatch",
		Detail: &backup.Error_ClusterIdError{ClusterIdError: &backup.ClusterIDError{
			Request: got,
		}},
	}
}
