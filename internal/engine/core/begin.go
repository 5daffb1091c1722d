package core

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Begin registers a call, which Close then waits for. It returns an error, and the call sends
// nothing, if Close has begun or ctx has ended. Every call of the program that takes a context
// begins here, or in [outcome.EndedBefore].
func (c *Parts) Begin(ctx context.Context) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if async.IsClosed(c.Closing) {
		return fault.ErrClosed
	}
	if err := outcome.EndedBefore(ctx); err != nil {
		return err
	}
	c.Working.Add(1)
	return nil
}

// Done ends a call that Begin has registered.
func (c *Parts) Done() { c.Working.Done() }

// Send sends a call until it is answered, the client's patience is over, or Close begins.
func (c *Parts) Send(ctx context.Context, call script.Call) (transport.Answer, error) {
	return c.Sender.Call(ctx, c.Closing, call)
}

// query is Send for a call that changes nothing, and that Close waits for.
func (c *Parts) query(ctx context.Context, call script.Call) (transport.Answer, error) {
	if err := c.Begin(ctx); err != nil {
		return transport.Answer{}, err
	}
	defer c.Done()
	return c.Send(ctx, call)
}

// Confirm has replicas confirm a grant. It sends the acquisition once more, which changes nothing
// unless a failover has lost the grant. Whatever the outcome, the first acquisition was granted.
// An error leaves it in doubt, except ErrNotReplicated, after which it is undone at once.
func (c *Parts) Confirm(ctx context.Context, first transport.Answer, again script.Call) (transport.Answer, error) {
	a, err := c.Sender.Call(ctx, c.Closing, again.Confirmed(c.Replication))
	switch {
	case err != nil && !errors.Is(err, fault.ErrNotReplicated):
		a.Doubt, a.DoubtAt, a.DoubtGeneration = true, a.Sent, nodes.NoGeneration
	case !a.Doubt:
		a.Doubt, a.DoubtAt, a.DoubtGeneration = first.Doubt, first.DoubtAt, first.DoubtGeneration
	}
	a.Sent = first.Sent
	return a, err
}
