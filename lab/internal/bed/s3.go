package bed

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"golang.org/x/sync/errgroup"

	"github.com/brctl/brctl/lab/internal/shape"
)

const (
	s3Bucket = "backups"
	s3Key    = "lab-access-key"
	s3Secret = "lab-secret-key"
)

// startS3 runs the S3 server, in memory and in this process. It checks no signature: any key will do.
func (b *Bed) startS3(ctx context.Context, group *errgroup.Group) error {
	if !b.opts.Shape.S3 {
		return nil
	}
	addr, err := b.ports.Address("s3", shape.HostName(0))
	if err != nil {
		return err
	}
	backend := s3mem.New()
	if err := backend.CreateBucket(s3Bucket); err != nil {
		return fmt.Errorf("create bucket: %w", err)
	}
	b.info.S3Address, b.info.S3Bucket, b.info.S3AccessKey, b.info.S3SecretKey = addr, s3Bucket, s3Key, s3Secret
	quiet := gofakes3.WithLogger(gofakes3.DiscardLog())
	return serve(ctx, group, addr, gofakes3.New(backend, quiet).Server())
}

// serve runs an HTTP server until the context ends.
func serve(ctx context.Context, group *errgroup.Group, addr string, h http.Handler) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:    log.New(discard{}, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	group.Go(func() error {
		if err := server.Serve(l); err != http.ErrServerClosed {
			return fmt.Errorf("serve %s: %w", addr, err)
		}
		return nil
	})
	context.AfterFunc(ctx, func() { server.Close() })
	return nil
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
