package rig

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"
)

// Server is a Redis server under test.
type Server struct {
	kind    string // the backend: url, server, sentinel, cluster, container, embedded
	detail  string
	url     url.URL
	nodes   []string // addresses of the data nodes that clients discover, the masters first
	masters int      // how many of the nodes are masters
	able    Capability
	process *localProcess // nil unless the rig controls the process
	stop    func()
}

// shared is the server of the whole test binary.
var shared *Server

// Shared returns the server that all tests of the binary use together.
func Shared() *Server { return shared }

// Fresh starts a server for this test alone, and stops it at the end of the test. Settings are
// command-line arguments of redis-server, such as "--maxmemory", "3mb"; they need the capability
// [Settings].
func Fresh(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	Need(tb, Private)
	if len(settings) > 0 {
		Need(tb, Settings)
	}
	s, err := startPrivate(shared.kind, settings)
	if err != nil {
		tb.Fatalf("rig: cannot start a private server: %v", err)
	}
	tb.Cleanup(s.close)
	return s
}

func startPrivate(kind string, settings []string) (*Server, error) {
	switch kind {
	case kindServer:
		return startLocal(settings)
	case kindSentinel:
		return freshSentinel(settings)
	case kindCluster:
		return freshCluster(settings)
	case kindContainer:
		return startContainer(settings)
	case kindEmbedded:
		return startEmbedded()
	default:
		return nil, fmt.Errorf("backend %s has no private servers", kind)
	}
}

func (s *Server) describe() string { return s.kind + " (" + s.detail + ")" }

func (s *Server) close() {
	if s.stop != nil {
		s.stop()
	}
}

// Embedded reports whether the server is the in-process one, for which a client must not use the
// cluster protocol.
func (s *Server) Embedded() bool { return s.kind == kindEmbedded }

// Clustered reports whether the server is a cluster, in which the keys of one command must share a
// slot.
func (s *Server) Clustered() bool { return s.kind == kindCluster }

// Watched reports whether clients query Sentinels for the server.
func (s *Server) Watched() bool { return s.kind == kindSentinel }

// Addr returns the server's host and port, or those of the first master.
func (s *Server) Addr() string {
	if len(s.nodes) > 0 {
		return s.nodes[0]
	}
	return s.url.Host
}

// URL returns the server's address in the form that clients take.
func (s *Server) URL() string { return s.url.String() }

// URLVia returns the URL for clients that go through addr, a proxy. If clients learn the addresses
// of the servers from other servers, [Server.Route] leads them through the proxy.
func (s *Server) URLVia(addr string) string {
	via := s.url
	if len(s.nodes) == 0 {
		via.Host = addr
	}
	return via.String()
}

// URLAs returns the URL for clients of another user.
func (s *Server) URLAs(user, password string) string {
	as := s.url
	as.User = url.UserPassword(user, password)
	return as.String()
}

// Options returns the settings of a plain rueidis client of this server, reached at addr: its own
// address, or that of a proxy in front of it.
func (s *Server) Options(addr string) rueidis.ClientOption {
	option := rueidis.MustParseURL(s.URLVia(addr))
	option.DisableCache = true
	option.PipelineMultiplex = -1 // one connection to each server
	option.ForceSingleClient = len(s.nodes) == 0
	if route := s.Route(addr); route != nil {
		routed(&option, route)
	}
	return option
}

// Raw opens a client for assertions, closed at the end of the test. A busy server may drop a
// connection, so Raw dials again for a while.
func (s *Server) Raw(tb testing.TB) rueidis.Client {
	tb.Helper()
	var client rueidis.Client
	Eventually(tb, healPatience, "a connection to "+s.describe(), func() (err error) {
		client, err = s.Client()
		return err
	})
	tb.Cleanup(client.Close)
	return client
}

// Pause suspends the server process: connections stay open and nothing answers.
func (s *Server) Pause(tb testing.TB) { tb.Helper(); s.control(tb).pause(tb) }

// Resume lets a paused server continue.
func (s *Server) Resume(tb testing.TB) { tb.Helper(); s.control(tb).resume(tb) }

// Kill ends the server process without warning. Its data is lost.
func (s *Server) Kill(tb testing.TB) { tb.Helper(); s.control(tb).kill() }

// Restart starts a killed server again on the same port.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	if err := s.control(tb).start(); err != nil {
		tb.Fatalf("rig: restart: %v", err)
	}
}

func (s *Server) control(tb testing.TB) *localProcess {
	tb.Helper()
	if s.process == nil {
		tb.Fatal("rig: the server process is not ours; call Need(t, Process) and Fresh first")
	}
	return s.process
}

var names atomic.Int64

// Name returns a lock name that no other test of this run uses.
func Name(tb testing.TB) string {
	return fmt.Sprintf("%s:%d", tb.Name(), names.Add(1))
}

// background is the context of the rig's own commands: they must work at clean-up,
// when the context of the test is over.
func background() context.Context { return context.Background() }
