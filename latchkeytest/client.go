package latchkeytest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey"
)

// closeTimeout is for a client that a test left in a state where it cannot be
// closed: the test then fails instead of hanging.
const closeTimeout = 5 * time.Second

// attached is a client with what it borrowed.
type attached struct {
	*latchkey.Client
	redis rueidis.Client
	line  *line
}

// Client returns a new client of the server, with at most one set of options.
// Each call makes another client with connections of its own, as another process
// would have: two of them exclude each other. The connections are pipes in
// memory, which makes the client fit for a [testing/synctest] bubble.
//
// The client is closed with the server. A test may close it earlier; its
// connections stay until the server is closed.
func (s *Server) Client(options ...latchkey.Options) *latchkey.Client {
	s.helper()
	client, err := s.connect(options)
	if err != nil {
		s.fail("making a client: %v", err)
	}
	return client.Client
}

// Crash makes a client that [Server.Client] returned what the client of a killed
// process is to the server: its connections end, none comes again, and nothing is
// released. What it holds comes back when the leases are over. The client itself
// lives on, cut off, and its holds are lost in its own eyes a little earlier.
func (s *Server) Crash(client *latchkey.Client) {
	s.helper()
	l := s.lineOf(client)
	if l == nil {
		s.fail("Crash needs a client that Client of this server returned")
	}
	s.network.kill(l)
}

func (s *Server) lineOf(client *latchkey.Client) *line {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.clients {
		if a.Client == client {
			return a.line
		}
	}
	return nil
}

func (s *Server) connect(options []latchkey.Options) (*attached, error) {
	settings, err := atMostOne(options)
	if err != nil {
		return nil, err
	}
	a := &attached{line: &line{}}
	if a.redis, err = rueidis.NewClient(s.clientOption(a.line)); err != nil {
		return nil, err
	}
	if a.Client, err = latchkey.New(a.redis, settings); err != nil {
		a.redis.Close()
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients = append(s.clients, a)
	return a, nil
}

func atMostOne(options []latchkey.Options) (latchkey.Options, error) {
	switch len(options) {
	case 0:
		return latchkey.Options{}, nil
	case 1:
		return options[0], nil
	default:
		return latchkey.Options{}, fmt.Errorf("%d sets of options, at most one is taken", len(options))
	}
}

// clientOption has what latchkey uses for clients of its own, and what miniredis
// needs: no client-side cache, no question whether it is a cluster.
func (s *Server) clientOption(l *line) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress:       []string{"latchkeytest"},
		DisableCache:      true,
		ForceSingleClient: true,
		AlwaysPipelining:  true,
		PipelineMultiplex: -1,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			return s.network.dial(l)
		},
	}
}

// release closes clients, the last one first. They could not release their holds
// on a server that is away, and would spend their whole retry budget on trying.
func (s *Server) release(clients []*attached) {
	var lines []*line
	for _, a := range clients {
		lines = append(lines, a.line)
	}
	s.Refuse("")
	s.network.admit(lines)
	for i := len(clients) - 1; i >= 0; i-- {
		s.hangUp(clients[i])
	}
}

// hangUp closes a client and then what it borrowed.
func (s *Server) hangUp(a *attached) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := a.Close(ctx); err != nil && s.tb != nil {
		s.tb.Errorf("latchkeytest: closing a client: %v", err)
	}
	a.redis.Close()
}
