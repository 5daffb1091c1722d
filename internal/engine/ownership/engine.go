package ownership

import (
	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
)

// Engine is what the locks of a client share: its parts, and its ownerships.
type Engine struct {
	*core.Parts

	Registry *Registry
	Handle   *Handle

	closed chan struct{} // closed when Close is done
	result error         // of Close
}

// Handle is what the program has of an engine: a Client.
type Handle struct{ engine *Engine }

// Engine returns the engine of the handle.
func (h *Handle) Engine() *Engine { return h.engine }

// NewEngine makes the inside of a client. The arguments are those of core.New.
func NewEngine(
	client rueidis.Client, config core.Config, r *report.Reporter, topology *nodes.Topology,
) (*Engine, error) {
	p, err := core.New(client, config, r, topology)
	if err != nil {
		return nil, err
	}
	c := &Engine{Parts: p, closed: make(chan struct{})}
	c.Registry = NewRegistry(c)
	c.Handle = &Handle{c}
	return c, nil
}
