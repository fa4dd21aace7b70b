package tidbcfgtest

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
)

// Statement is one statement that a client sent.
type Statement struct {
	Conn uint32 // connection id
	SQL  string
}

// Server is a fake TiDB. Its methods may be called while clients work.
type Server struct {
	listener net.Listener
	tls      *tls.Config
	handlers sync.WaitGroup
	done     context.CancelFunc

	mu         sync.Mutex
	stalled    bool
	nextID     uint32
	conns      map[uint32]net.Conn
	statements []Statement
	passwords  map[string]string
	revoked    map[string]bool
	tables     int
	tikvs      []*tikv
}

// New starts a server in front of the given TiKVs, with user "brctl" and no
// password. It stops when the test ends.
func New(tb testing.TB, tikvs ...TiKV) *Server {
	tb.Helper()
	return start(tb, nil, tikvs)
}

// NewTLS is New for a server that offers TLS.
func NewTLS(tb testing.TB, config *tls.Config, tikvs ...TiKV) *Server {
	tb.Helper()
	return start(tb, config, tikvs)
}

func start(tb testing.TB, config *tls.Config, tikvs []TiKV) *Server {
	tb.Helper()
	var lc net.ListenConfig
	listener, err := lc.Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("listen: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		listener:  listener,
		tls:       config,
		done:      cancel,
		conns:     make(map[uint32]net.Conn),
		passwords: map[string]string{"brctl": ""},
		revoked:   make(map[string]bool),
		tables:    40,
	}
	for _, t := range tikvs {
		s.tikvs = append(s.tikvs, newTiKV(t))
	}
	s.handlers.Go(func() { s.accept(ctx) })
	tb.Cleanup(s.Close)
	return s
}

// Addr is the SQL address, host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close stops listening and closes every connection. Closing twice is fine.
func (s *Server) Close() {
	s.done()
	_ = s.listener.Close()
	s.DropConnections()
	s.handlers.Wait()
}

// DropConnections closes every connection, as a restart of TiDB does.
func (s *Server) DropConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		_ = c.Close()
	}
}

// Stall makes new connections hang: TCP is accepted, nothing is ever said.
func (s *Server) Stall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stalled = true
}

// SetPassword adds a user or changes its password.
func (s *Server) SetPassword(user, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passwords[user] = password
}

// SetTables changes the number of user tables that every user sees.
func (s *Server) SetTables(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tables = n
}

// Revoke takes privileges away from every user: "CONFIG", "PROCESS".
func (s *Server) Revoke(privileges ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range privileges {
		s.revoked[p] = true
	}
}

// Statements returns what clients sent, in order of arrival.
func (s *Server) Statements() []Statement {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.statements)
}

func (s *Server) accept(ctx context.Context) {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.nextID++
		id := s.nextID
		s.conns[id] = conn
		stalled := s.stalled
		s.mu.Unlock()
		s.handlers.Go(func() { s.handle(ctx, id, conn, stalled) })
	}
}

func (s *Server) handle(ctx context.Context, id uint32, conn net.Conn, stalled bool) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, id)
		_ = conn.Close()
	}()
	if stalled {
		<-ctx.Done()
		return
	}
	s.mu.Lock()
	passwords := maps.Clone(s.passwords)
	s.mu.Unlock()
	w := &wire{Conn: conn}
	user, err := w.handshake(id, s.tls, passwords)
	if err != nil {
		return
	}
	s.serve(ctx, w, &client{id: id, user: user})
}

// client is the state of one connection: its warnings belong to it alone.
type client struct {
	id       uint32
	user     string
	warnings []string
}

func (s *Server) serve(ctx context.Context, w *wire, c *client) {
	for {
		packet, err := w.read()
		if err != nil || len(packet) == 0 {
			return
		}
		switch packet[0] {
		case comQuit:
			return
		case comPing:
			err = w.writeOK(0)
		case comQuery:
			err = s.query(ctx, w, c, string(packet[1:]))
		case comPrepare:
			err = w.writeError(&sqlError{1295, "HY000", "This command is not supported in the prepared statement protocol yet"})
		default:
			err = w.writeError(&sqlError{1047, "08S01", "Unknown command"})
		}
		if err != nil {
			return
		}
	}
}

func (s *Server) query(ctx context.Context, w *wire, c *client, sql string) error {
	s.mu.Lock()
	s.statements = append(s.statements, Statement{Conn: c.id, SQL: sql})
	s.mu.Unlock()
	a := s.answer(ctx, c, sql)
	switch {
	case a.drop:
		return net.ErrClosed
	case a.err != nil:
		return w.writeError(a.err)
	case a.columns == nil:
		return w.writeOK(len(c.warnings))
	}
	return w.writeRows(a.columns, a.rows, len(c.warnings))
}
