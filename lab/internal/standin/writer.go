package standin

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc64"
	"time"

	backup "github.com/pingcap/kvproto/pkg/brpb"
	"github.com/pingcap/kvproto/pkg/errorpb"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/pingcap/tidb/br/pkg/storage"

	"github.com/brctl/brctl/lab/internal/engine"
)

// diskFull is the text that TiKV sends when its target has no space left.
const diskFull = `Io(Os { code: 28, kind: StorageFull, message: "No space left on device" })`

// scanPage is how many rows one read of the engine returns.
const scanPage = 4096

// writer writes the backup files of one stream: the real rows of each region, in a file format of ours (length-prefixed
// keys and values, uncompressed), under the names and with the checksums that TiKV would give.
type writer struct {
	store   *Store
	req     *backup.BackupRequest
	storage storage.ExternalStorage
	free    time.Time // when the rate limit lets the next file go
}

func newWriter(ctx context.Context, s *Store, req *backup.BackupRequest) (*writer, error) {
	st, err := storage.New(ctx, req.StorageBackend, &storage.ExternalStorageOptions{SendCredentials: false})
	if err != nil {
		return nil, fmt.Errorf("open backup target: %w", err)
	}
	return &writer{store: s, req: req, storage: st}, nil
}

func (w *writer) close() { w.storage.Close() }

// pace holds a finished piece back as long as the request's rate limit asks. It follows virtual bytes. Unlike in TiKV
// the thread is free meanwhile.
func (w *writer) pace(ctx context.Context, bytes int64) error {
	if w.req.RateLimit == 0 {
		return nil
	}
	if now := time.Now(); w.free.Before(now) {
		w.free = now
	}
	w.free = w.free.Add(time.Duration(float64(bytes) / float64(w.req.RateLimit) * float64(time.Second)))
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Until(w.free)):
		return nil
	}
}

// answer reads, writes and describes one piece; what goes wrong becomes an error response, as in TiKV.
func (w *writer) answer(ctx context.Context, p engine.Piece) *backup.BackupResponse {
	resp := &backup.BackupResponse{StartKey: p.Start, EndKey: p.End}
	rows, kvErr, regionErr := w.read(ctx, p)
	switch {
	case regionErr != nil:
		w.store.page.AddError("region_not_found")
		resp.Error = &backup.Error{Msg: regionErr.Message, Detail: &backup.Error_RegionError{RegionError: regionErr}}
	case kvErr != nil:
		w.store.page.AddError("key_is_locked")
		resp.Error = &backup.Error{Msg: kvErr.String(), Detail: &backup.Error_KvError{KvError: kvErr}}
	case len(rows) > 0:
		begin := time.Now()
		file, err := w.write(ctx, p, rows)
		w.store.page.ObserveRange("save", time.Since(begin))
		if err != nil {
			w.store.page.AddError("other")
			resp.Error = &backup.Error{Msg: err.Error()}
			return resp
		}
		resp.Files = []*backup.File{file}
	}
	return resp
}

// read scans the rows of a piece as they were at the backup's timestamp.
func (w *writer) read(ctx context.Context, p engine.Piece) ([]*kvrpcpb.KvPair, *kvrpcpb.KeyError, *errorpb.Error) {
	var rows []*kvrpcpb.KvPair
	start := p.Start
	for {
		resp, err := w.store.cluster.cfg.Engine.KvScan(ctx, &kvrpcpb.ScanRequest{
			Context: p.Context, StartKey: start, EndKey: p.End, Version: w.req.EndVersion, Limit: scanPage,
		})
		if err != nil {
			return nil, nil, &errorpb.Error{Message: err.Error()}
		}
		if resp.RegionError != nil {
			return nil, nil, resp.RegionError
		}
		for _, pair := range resp.Pairs {
			if pair.Error != nil {
				return nil, pair.Error, nil
			}
		}
		rows = append(rows, resp.Pairs...)
		if len(resp.Pairs) < scanPage {
			return rows, nil, nil
		}
		start = append(append([]byte(nil), rows[len(rows)-1].Key...), 0)
	}
}

func (w *writer) write(ctx context.Context, p engine.Piece, rows []*kvrpcpb.KvPair) (*backup.File, error) {
	if w.store.cluster.targetFull.Load() {
		return nil, fmt.Errorf("%s", diskFull)
	}
	file := &backup.File{
		Name: w.name(p), StartKey: p.Start, EndKey: p.End, Cf: "write",
		StartVersion: w.req.StartVersion, EndVersion: w.req.EndVersion, TotalKvs: uint64(len(rows)),
	}
	var data []byte
	table := crc64.MakeTable(crc64.ECMA)
	for _, row := range rows {
		data = binary.AppendUvarint(data, uint64(len(row.Key)))
		data = append(data, row.Key...)
		data = binary.AppendUvarint(data, uint64(len(row.Value)))
		data = append(data, row.Value...)
		file.TotalBytes += uint64(len(row.Key) + len(row.Value))
		file.Crc64Xor ^= crc64.Update(crc64.Checksum(row.Key, table), table, row.Value)
	}
	sum := sha256.Sum256(data)
	file.Sha256, file.Size_ = sum[:], uint64(len(data))
	if err := w.storage.WriteFile(ctx, file.Name, data); err != nil {
		return nil, fmt.Errorf("write backup file: %w", err)
	}
	return file, nil
}

// name is TiKV's scheme: a folder per store, then region, version, a hash of the start key and the time.
func (w *writer) name(p engine.Piece) string {
	hash := sha256.Sum256(p.Start)
	return fmt.Sprintf("%d/%d_%d_%s_%d_write.sst", w.store.place.ID, p.Context.RegionId, p.Version,
		hex.EncodeToString(hash[:]), time.Now().UnixMilli())
}
