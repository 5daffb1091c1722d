package latchkeytest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// Server is a Redis server inside this process. Its methods may be called from
// any number of goroutines. If a method fails, it
// ends the test with tb.Fatalf; on a server made by [Start] it panics.
type Server struct {
	tb      testing.TB // nil on a server made by Start
	redis   *miniredis.Miniredis
	network *network
	clock   *clock
	refusal atomic.Pointer[string]

	mu      sync.Mutex
	clients []*attached
	closed  bool
}

// ServerOption is a setting of a [Server]: [ManualTime] is the only one.
type ServerOption func(*Server)

// NewServer starts an empty server. The end of the test closes it together with
// every client that [Server.Client] made. The server opens no port before
// [Server.URL] is called.
func NewServer(tb testing.TB, options ...ServerOption) *Server {
	tb.Helper()
	s, err := Start(options...)
	if err != nil {
		tb.Fatalf("latchkeytest: %v", err)
	}
	s.tb = tb
	tb.Cleanup(s.Close)
	return s
}

// Start starts a server without a test, for demonstrations and benchmarks. The
// caller closes it.
func Start(options ...ServerOption) (*Server, error) {
	redis := miniredis.NewMiniRedis()
	s := &Server{redis: redis, network: newNetwork(redis), clock: newClock(redis)}
	for _, option := range options {
		option(s)
	}
	// The options set the clock, which must happen before it runs: otherwise TTLs
	// would jump by the difference.
	redis.ClockTTL(true)
	if err := s.network.open(); err != nil {
		return nil, fmt.Errorf("starting the server: %w", err)
	}
	redis.Server().SetPreHook(s.intercept)
	return s, nil
}

// Close closes the clients made by [Server.Client], which releases their holds,
// and then the server with all its data. Only the first call has an effect. A
// server made by [NewServer] is closed automatically.
func (s *Server) Close() {
	clients, first := s.shut()
	if !first {
		return
	}
	s.release(clients)
	s.network.close()
	s.redis.Close()
}

func (s *Server) shut() (clients []*attached, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, s.closed = !s.closed, true
	return s.clients, first
}

// URL returns the address for [latchkey.Connect] and for other programs, on the
// loopback interface. The first call opens the port, so do not call URL in a
// [testing/synctest] bubble, where a real socket keeps the clock from moving.
func (s *Server) URL() string {
	s.helper()
	address, err := s.network.listen()
	if err != nil {
		s.fail("opening a port: %v", err)
	}
	return "redis://" + address
}

// Refuse makes the server answer every command with message, as an error reply,
// until Refuse(""). The errors of Redis begin with a code: "READONLY …",
// "LOADING …", "OOM …". Data, clock and connections stay as they are, and
// subscribers still receive messages.
func (s *Server) Refuse(message string) {
	s.refusal.Store(&message)
}

// Stop makes the server unreachable: it cuts every connection and refuses new
// ones until [Server.Restart]. The data stays and the clock keeps running, so
// leases may expire in between.
func (s *Server) Stop() {
	s.network.cut()
}

// Restart makes the server reachable again after [Server.Stop], under the same
// URL. Messages published in between are lost, as after any reconnect. Data and
// scripts are kept.
func (s *Server) Restart() {
	s.helper()
	if err := s.network.reopen(); err != nil {
		s.fail("opening the port again: %v", err)
	}
}

// intercept sees every command before the server does, and reports whether it
// has answered the command.
func (s *Server) intercept(peer *server.Peer, command string, _ ...string) bool {
	if refusal := s.refusal.Load(); refusal != nil && *refusal != "" {
		peer.WriteError(*refusal)
		return true
	}
	// miniredis would claim to be a cluster of one node, and clients would then use
	// commands that it does not have. A real single server gives this answer.
	if command == "CLUSTER" {
		peer.WriteError("ERR This instance has cluster support disabled")
		return true
	}
	return false
}

func (s *Server) helper() {
	if s.tb != nil {
		s.tb.Helper()
	}
}

func (s *Server) fail(format string, args ...any) {
	s.helper()
	text := "latchkeytest: " + fmt.Sprintf(format, args...)
	if s.tb == nil {
		panic(text)
	}
	s.tb.Fatalf("%s", text)
}
