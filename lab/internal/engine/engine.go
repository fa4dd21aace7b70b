// Package engine is the storage half of the TiKV stand-ins: one unistore engine (TiDB's own in-process storage) that all
// stand-ins of a lab share, and a region table of ours that spreads its regions over them. Real rows live here; every
// stand-in can read all of them, and the region table decides which stand-in leads what.
package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pingcap/badger"
	"github.com/pingcap/badger/options"
	"github.com/pingcap/tidb/pkg/store/mockstore/unistore/config"
	"github.com/pingcap/tidb/pkg/store/mockstore/unistore/lockstore"
	"github.com/pingcap/tidb/pkg/store/mockstore/unistore/pd"
	"github.com/pingcap/tidb/pkg/store/mockstore/unistore/tikv"
	"github.com/pingcap/tidb/pkg/store/mockstore/unistore/tikv/mvcc"
	"github.com/pingcap/tidb/pkg/util/codec"
)

// Open opens the engine in dir. The returned server answers the whole TiKV protocol for every region of the table.
func Open(ctx context.Context, dir string, client pd.Client, regions *Regions) (*tikv.Server, error) {
	conf := config.DefaultConf
	conf.Server.Raft = false
	conf.Engine.DBPath = dir
	conf.Engine.ValueThreshold = 0
	physical, logical, err := client.GetTS(ctx)
	if err != nil {
		return nil, fmt.Errorf("get timestamp: %w", err)
	}
	safePoint := &tikv.SafePoint{}
	db, err := openDB(conf.Engine, safePoint)
	if err != nil {
		return nil, fmt.Errorf("open storage engine: %w", err)
	}
	bundle := &mvcc.DBBundle{
		DB:        db,
		LockStore: lockstore.NewMemStore(8 << 20),
		StateTS:   uint64(physical)<<18 + uint64(logical),
	}
	inner := tikv.NewStandAlongInnerServer(bundle)
	store := tikv.NewMVCCStore(&conf, bundle, dir, safePoint, tikv.NewDBWriter(bundle), client)
	store.DeadlockDetectSvr.ChangeRole(tikv.Leader)
	store.StartDeadlockDetection(false)
	return tikv.NewServer(regions, store, inner), nil
}

// openDB sets the same options as unistore's own server, which does not export them.
func openDB(conf config.Engine, safePoint *tikv.SafePoint) (*badger.DB, error) {
	dir := filepath.Join(conf.DBPath, "kv")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	opts := badger.DefaultOptions
	opts.Dir, opts.ValueDir = dir, dir
	opts.ManagedTxns = true
	opts.NumCompactors = conf.NumCompactors
	opts.ValueThreshold = conf.ValueThreshold
	opts.ValueLogWriteOptions.WriteBufferSize = 4 << 20
	opts.ValueLogFileSize = conf.VlogFileSize
	opts.ValueLogMaxNumFiles = 3
	opts.MaxMemTableSize = conf.MaxMemTableSize
	opts.TableBuilderOptions.MaxTableSize = conf.MaxTableSize
	opts.TableBuilderOptions.SuRFStartLevel = conf.SurfStartLevel
	opts.TableBuilderOptions.CompressionPerLevel = make([]options.CompressionType, len(opts.TableBuilderOptions.CompressionPerLevel))
	opts.NumMemtables = conf.NumMemTables
	opts.NumLevelZeroTables = conf.NumL0Tables
	opts.NumLevelZeroTablesStall = conf.NumL0TablesStall
	opts.LevelOneSize = conf.L1Size
	opts.MaxBlockCacheSize = conf.BlockCacheSize
	opts.MaxIndexCacheSize = conf.IndexCacheSize
	opts.CompactL0WhenClose = conf.CompactL0WhenClose
	opts.CompactionFilterFactory = safePoint.CreateCompactionFilter
	return badger.Open(opts)
}

func encodeKey(raw []byte) []byte {
	if len(raw) == 0 {
		return nil
	}
	return codec.EncodeBytes(nil, raw)
}
