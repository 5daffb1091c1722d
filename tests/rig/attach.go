package rig

import (
	"net/url"
	"strings"

	"github.com/redis/rueidis"
)

// Ticket says in one word how another process reaches this server; see [Attach].
func (s *Server) Ticket() string { return s.kind + "+" + s.URL() }

// Attach returns the server that a [Server.Ticket] of another process stands for.
// It is for child processes, which must not start servers of their own.
func Attach(ticket string) (*Server, error) {
	u, err := url.Parse(ticket)
	if err != nil {
		return nil, err
	}
	kind, scheme, _ := strings.Cut(u.Scheme, "+")
	u.Scheme = scheme
	return &Server{kind: kind, detail: "attached", url: *u}, nil
}

// Client opens a plain client; the caller closes it.
func (s *Server) Client() (rueidis.Client, error) { return rueidis.NewClient(s.Options(s.Addr())) }
