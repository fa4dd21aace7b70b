package pdtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/brctl/brctl/pkg/policy"
)

// service is the part of PD's gRPC that brctl and its client library use; all
// else answers Unimplemented.
type service struct {
	pdpb.UnimplementedPDServer
	*member
}

func (m *member) name() string { return fmt.Sprintf("pd-%d", m.number) }
func (m *member) id() uint64   { return uint64(m.number) + 1 }

func (m *member) proto() *pdpb.Member {
	return &pdpb.Member{Name: m.name(), MemberId: m.id(), ClientUrls: []string{m.url}}
}

func header() *pdpb.ResponseHeader { return &pdpb.ResponseHeader{ClusterId: ClusterID} }

// admit waits while the member hangs, and turns away what only a leader
// answers.
func (s *service) admit(ctx context.Context) error {
	s.wait(ctx)
	if !s.pd.leads(s.number) {
		return status.Error(codes.Unavailable, "not leader")
	}
	return nil
}

func (s *service) GetMembers(ctx context.Context, _ *pdpb.GetMembersRequest) (*pdpb.GetMembersResponse, error) {
	s.wait(ctx)
	resp := &pdpb.GetMembersResponse{Header: header()}
	for _, m := range s.pd.members {
		resp.Members = append(resp.Members, m.proto())
		if s.pd.leads(m.number) {
			resp.Leader, resp.EtcdLeader = m.proto(), m.proto()
		}
	}
	return resp, nil
}

func (s *service) GetClusterInfo(ctx context.Context, _ *pdpb.GetClusterInfoRequest) (*pdpb.GetClusterInfoResponse, error) {
	s.wait(ctx)
	return &pdpb.GetClusterInfoResponse{Header: header(), ServiceModes: []pdpb.ServiceMode{pdpb.ServiceMode_PD_SVC_MODE}}, nil
}

func (s *service) Tso(stream pdpb.PD_TsoServer) error {
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.admit(stream.Context()); err != nil {
			return err
		}
		if err := stream.Send(s.pd.timestamps(req.GetCount())); err != nil {
			return err
		}
	}
}

func (f *FakePD) timestamps(count uint32) *pdpb.TsoResponse {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logical += int64(count)
	return &pdpb.TsoResponse{
		Header: header(), Count: count,
		Timestamp: &pdpb.Timestamp{Physical: f.now().UnixMilli(), Logical: f.logical},
	}
}

func (s *service) GetStore(ctx context.Context, req *pdpb.GetStoreRequest) (*pdpb.GetStoreResponse, error) {
	if err := s.admit(ctx); err != nil {
		return nil, err
	}
	s.pd.mu.Lock()
	defer s.pd.mu.Unlock()
	i := slices.IndexFunc(s.pd.stores, func(st policy.Store) bool { return st.ID == req.GetStoreId() })
	if i < 0 {
		return &pdpb.GetStoreResponse{Header: &pdpb.ResponseHeader{ClusterId: ClusterID, Error: &pdpb.Error{
			Type: pdpb.ErrorType_UNKNOWN, Message: fmt.Sprintf("invalid store ID %d, not found", req.GetStoreId()),
		}}}, nil
	}
	st := s.pd.stores[i]
	return &pdpb.GetStoreResponse{
		Header: header(),
		Store:  &metapb.Store{Id: st.ID, Address: st.Address},
		Stats:  &pdpb.StoreStats{StoreId: st.ID, Capacity: st.CapacityBytes, Available: st.AvailableBytes, UsedSize: st.UsedBytes},
	}, nil
}

// UpdateGCSafePoint never moves the safepoint back; 0 reads it.
func (s *service) UpdateGCSafePoint(ctx context.Context, req *pdpb.UpdateGCSafePointRequest) (*pdpb.UpdateGCSafePointResponse, error) {
	if err := s.admit(ctx); err != nil {
		return nil, err
	}
	s.pd.mu.Lock()
	defer s.pd.mu.Unlock()
	s.pd.gc = max(s.pd.gc, policy.TS(req.GetSafePoint()))
	return &pdpb.UpdateGCSafePointResponse{Header: header(), NewSafePoint: uint64(s.pd.gc)}, nil
}

// UpdateServiceGCSafePoint follows PD: expired entries go, a ttl of 0 removes,
// a safepoint behind the minimum is not stored and is no error, and the answer
// describes the minimum, not the caller.
func (s *service) UpdateServiceGCSafePoint(ctx context.Context, req *pdpb.UpdateServiceGCSafePointRequest) (*pdpb.UpdateServiceGCSafePointResponse, error) {
	if err := s.admit(ctx); err != nil {
		return nil, err
	}
	f := s.pd
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now().Unix()
	id := string(req.GetServiceId())
	switch {
	case req.GetTTL() > 0:
		if policy.TS(req.GetSafePoint()) >= f.minimum(now).SafePoint {
			f.services[id] = policy.ServiceSafePoint{ServiceID: id, ExpiredAt: expiry(now, req.GetTTL()), SafePoint: policy.TS(req.GetSafePoint())}
		}
	case id == gcWorkerID:
		return nil, status.Error(codes.Unknown, "cannot remove service safe point of gc_worker")
	default:
		delete(f.services, id)
	}
	least := f.minimum(now)
	return &pdpb.UpdateServiceGCSafePointResponse{
		Header: header(), ServiceId: []byte(least.ServiceID), TTL: least.ExpiredAt - now, MinSafePoint: uint64(least.SafePoint),
	}, nil
}

// minimum drops expired services, creates gc_worker if none is left, and
// returns the one that holds GC back most.
func (f *FakePD) minimum(now int64) policy.ServiceSafePoint {
	var live []policy.ServiceSafePoint
	for id, s := range f.services {
		if s.ExpiredAt < now {
			delete(f.services, id)
			continue
		}
		live = append(live, s)
	}
	if len(live) == 0 {
		f.services[gcWorkerID] = policy.ServiceSafePoint{ServiceID: gcWorkerID, ExpiredAt: math.MaxInt64}
		return f.services[gcWorkerID]
	}
	return slices.MinFunc(live, func(a, b policy.ServiceSafePoint) int { return cmp.Compare(a.SafePoint, b.SafePoint) })
}

func expiry(now, ttl int64) int64 {
	if ttl >= math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + ttl
}
