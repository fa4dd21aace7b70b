package app

import (
	"fmt"
	"os"
	"path/filepath"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/brctl/brctl/internal/config"
)

// logName is brctl's own log in the state directory's log folder.
const logName = "brctl.log"

// openLog opens brctl's log for appending. The caller closes it.
func openLog(cfg *config.Config) (*zap.Logger, func() error, error) {
	path := filepath.Join(cfg.State.Dir, "log", logName)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, nil, fmt.Errorf("open log: %w", err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, nil, fmt.Errorf("open log: %w", err)
	}
	level, err := zapcore.ParseLevel(cfg.Log.Level)
	if err != nil {
		level = zapcore.InfoLevel // validated before
	}
	core := zapcore.NewCore(logEncoder(cfg.Log.Format), file, level)
	return zap.New(core), file.Close, nil
}

func logEncoder(format string) zapcore.Encoder {
	conf := zap.NewProductionEncoderConfig()
	conf.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	if format == "json" {
		return zapcore.NewJSONEncoder(conf)
	}
	return zapcore.NewConsoleEncoder(conf)
}
