package latchkeytest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// Server is a Redis server inside this process. All methods may be called from
// any number of goroutines. What fails in a method, because the test asked for
// something impossible, ends the test by tb.Fatalf; on a server made by [Start]
// it panics.
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

// NewServer starts an empty server that is closed when the test ends, together
// with every client that [Server.Client] made. No port is opened unless
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
	// The clock must be set before time may run, or TTLs would jump by the
	// difference.
	redis.ClockTTL(true)
	if err := s.network.open(); err != nil {
		return nil, fmt.Errorf("starting the server: %w", err)
	}
	redis.Server().SetPreHook(s.intercept)
	return s, nil
}

// Close closes the clients made by [Server.Client], which release what they hold,
// and then the server with all its data. Only the first call has an effect, and a
// server made by [NewServer] needs none.
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
// loopback interface. The first call opens the port, so it does not belong into
// a [testing/synctest] bubble, where a real socket keeps the clock from moving.
func (s *Server) URL() string {
	s.helper()
	address, err := s.network.listen()
	if err != nil {
		s.fail("opening a port: %v", err)
	}
	return "redis://" + address
}

// Refuse makes the server answer every command with message, as an error reply,
// until Refuse(""). Redis' own errors begin with a code: "READONLY …",
// "LOADING …", "OOM …". Data, clock and connections stay as they are, and
// subscribers go on receiving.
func (s *Server) Refuse(message string) {
	s.refusal.Store(&message)
}

// Stop makes the server unreachable: it cuts every connection and refuses new
// ones until [Server.Restart]. Data stays, and the clock goes on, so leases may
// run out meanwhile.
func (s *Server) Stop() {
	s.network.cut()
}

// Restart ends what [Server.Stop] began, under the same URL. Messages published
// in between are gone, as they are after any reconnect. Data and scripts are
// still there: the server was away, not emptied.
func (s *Server) Restart() {
	s.helper()
	if err := s.network.reopen(); err != nil {
		s.fail("opening the port again: %v", err)
	}
}

// intercept sees every command before the server does, and reports whether it
// has answered it.
func (s *Server) intercept(peer *server.Peer, command string, _ ...string) bool {
	if refusal := s.refusal.Load(); refusal != nil && *refusal != "" {
		peer.WriteError(*refusal)
		return true
	}
	// miniredis would call itself a cluster of one node, and clients would then use
	// what it does not have. A real single server answers this.
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
