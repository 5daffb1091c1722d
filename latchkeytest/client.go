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

// closeTimeout limits the time to close a client. If a test leaves a client in a
// state where it cannot be closed, the test fails instead of hanging.
const closeTimeout = 5 * time.Second

// attached is a client with its Redis client and its line to the server.
type attached struct {
	*latchkey.Client
	redis rueidis.Client
	line  *line
}

// Client returns a new client of the server, with at most one set of options.
// Each call creates a client with connections of its own, as another process
// would have, so two clients exclude each other. The connections are pipes in
// memory, so the client works in a [testing/synctest] bubble.
//
// Closing the server closes the client. A test may close the client earlier; its
// connections stay open until the server is closed.
func (s *Server) Client(options ...latchkey.Options) *latchkey.Client {
	s.helper()
	client, err := s.connect(options)
	if err != nil {
		s.fail("making a client: %v", err)
	}
	return client.Client
}

// Crash makes a client that [Server.Client] returned look to the server like the
// client of a killed process: its connections end, it cannot open new ones, and
// it releases nothing. The locks that it holds become free when their leases
// end. The client itself keeps running, cut off from the server, and reports its
// holds as lost slightly before their leases end on the server.
func (s *Server) Crash(client *latchkey.Client) {
	s.helper()
	l := s.lineOf(client)
	if l == nil {
		s.fail("Crash needs a client that Server.Client of the same server returned")
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
		return latchkey.Options{}, fmt.Errorf("%d sets of options, want at most one", len(options))
	}
}

// clientOption returns the settings that latchkey uses for clients of its own,
// and those that miniredis needs: no client-side cache, and no check for a
// cluster.
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

// release makes the server reachable again and closes the clients, the last one
// first. If the server were unreachable, they could not release their holds, and
// would spend their whole retry budget on trying.
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

// hangUp closes a client and then its Redis client.
func (s *Server) hangUp(a *attached) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := a.Close(ctx); err != nil && s.tb != nil {
		s.tb.Errorf("latchkeytest: closing a client: %v", err)
	}
	a.redis.Close()
}
