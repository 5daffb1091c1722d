package rig

import (
	"encoding/json"
	"net/url"

	"github.com/redis/rueidis"
)

// ticket is the content of a [Server.Ticket].
type ticket struct {
	Kind, URL string
	Nodes     []string
	Masters   int
}

// Ticket returns one word that tells another process how to reach this server; see [Attach].
func (s *Server) Ticket() string {
	text, _ := json.Marshal(ticket{s.kind, s.URL(), s.nodes, s.masters}) // strings and numbers cannot fail
	return string(text)
}

// Attach returns the server that a [Server.Ticket] of another process describes. It is for child
// processes, which must not start servers of their own.
func Attach(text string) (*Server, error) {
	var t ticket
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return nil, err
	}
	u, err := url.Parse(t.URL)
	if err != nil {
		return nil, err
	}
	return &Server{kind: t.Kind, detail: "attached", url: *u, nodes: t.Nodes, masters: t.Masters}, nil
}

// Client opens a plain client; the caller closes it.
func (s *Server) Client() (rueidis.Client, error) { return rueidis.NewClient(s.Options(s.Addr())) }
