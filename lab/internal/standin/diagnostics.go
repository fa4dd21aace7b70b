package standin

import (
	"context"
	"strconv"

	"github.com/pingcap/kvproto/pkg/diagnosticspb"
)

// diagnosticsService answers information_schema.cluster_hardware.
type diagnosticsService struct {
	diagnosticspb.UnimplementedDiagnosticsServer
	store *Store
}

// memoryPerCore is an assumption about the pretended hosts; nothing depends on it.
const memoryPerCore = 4 << 30

// ServerInfo tells the cores as TiKV does: logical ones are what the instance may use, physical ones what the host has.
func (d *diagnosticsService) ServerInfo(_ context.Context, req *diagnosticspb.ServerInfoRequest) (*diagnosticspb.ServerInfoResponse, error) {
	if req.Tp != diagnosticspb.ServerInfoType_HardwareInfo && req.Tp != diagnosticspb.ServerInfoType_All {
		return &diagnosticspb.ServerInfoResponse{}, nil
	}
	sh := d.store.cluster.cfg.Shape
	pair := func(k, v string) *diagnosticspb.ServerInfoPair {
		return &diagnosticspb.ServerInfoPair{Key: k, Value: v}
	}
	return &diagnosticspb.ServerInfoResponse{Items: []*diagnosticspb.ServerInfoItem{
		{Tp: "cpu", Name: "cpu", Pairs: []*diagnosticspb.ServerInfoPair{
			pair("cpu-logical-cores", strconv.FormatFloat(sh.Quota(), 'f', -1, 64)),
			pair("cpu-physical-cores", strconv.Itoa(sh.Cores)),
			pair("cpu-frequency", "2600MHz"),
			pair("cpu-arch", "x86_64"),
		}},
		{Tp: "memory", Name: "memory", Pairs: []*diagnosticspb.ServerInfoPair{
			pair("capacity", strconv.Itoa(sh.Cores*memoryPerCore)),
		}},
	}}, nil
}
