package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// begin registers a call, which Close then waits for. It returns an error, and the call sends nothing, if Close
// has begun or ctx has ended. Every call of the program that takes a context begins here, or in endedBefore.
func (c *parts) begin(ctx context.Context) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if async.IsClosed(c.closing) {
		return fault.ErrClosed
	}
	if err := endedBefore(ctx); err != nil {
		return err
	}
	c.working.Add(1)
	return nil
}

// endedBefore returns the error of a call whose context has ended before it began: that of the context alone,
// since nothing was sent and nothing is known of the server.
func endedBefore(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	err := fault.ContextError(ctx)
	if fault.IsWaitOver(err) { // of a call of which this one is a step
		return transport.Unavailable(err)
	}
	return err
}

// done ends a call that begin has registered.
func (c *parts) done() { c.working.Done() }

// send sends a call until it is answered, the client's patience is over, or Close begins.
func (c *parts) send(ctx context.Context, each script.Call) (transport.Answer, error) {
	return c.sender.Call(ctx, c.closing, each.Cmd, each.Keys, each.Args)
}
