package latchkey

import (
	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// engine is what the locks of a client share: its parts, and its ownerships.
type engine struct {
	*core.Parts

	registry *registry
	handle   *clientHandle

	closed chan struct{} // closed when close is done
	result error         // of close
}

// clientHandle is what the program has of an engine: a Client.
type clientHandle struct{ engine *engine }

// newEngine makes the inside of a client. The arguments are those of core.New.
func newEngine(client rueidis.Client, config core.Config, r *report.Reporter, topology *transport.Topology) (*engine, error) {
	p, err := core.New(client, config, r, topology)
	if err != nil {
		return nil, err
	}
	c := &engine{Parts: p, closed: make(chan struct{})}
	c.registry = newRegistry(c)
	c.handle = &clientHandle{c}
	return c, nil
}
