package core

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/connect"
)

// The parts of Close, which is in owners/close.go.

// CloseContext returns the context of a Close. It ends with the given one, unless that has ended
// before or ends because the client is closed. Its cause is the error to return.
func (c *Parts) CloseContext(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	closing, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	deadline, bounded := ctx.Deadline()
	late := ctx.Err() != nil
	stop := context.AfterFunc(ctx, func() {
		ended := ctx
		if late || errors.Is(context.Cause(ctx), fault.ErrClosed) {
			limit := c.Config.RetryBudget
			if bounded && !late {
				limit = min(limit, time.Until(deadline))
			}
			var free context.CancelFunc
			ended, free = context.WithTimeout(closing, limit)
			defer free()
			<-ended.Done()
		}
		cancel(fault.ContextError(ended))
	})
	return closing, func(cause error) { stop(); cancel(cause) }
}

// StartClosing reports whether this is the first call of Close.
func (c *Parts) StartClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if async.IsClosed(c.Closing) {
		return false
	}
	close(c.Closing)
	return true
}

// End ends the parts when no call of the program uses them any more: unknown outcomes are settled,
// helpers stop, and the last reports are delivered. unreleased is why locks may not be released, or
// nil.
func (c *Parts) End(ctx context.Context, unreleased error) {
	defer close(c.ended)
	err := c.end(ctx, unreleased == nil)
	c.result = cmp.Or(unreleased, err)
}

// AwaitEnd waits until the parts have ended, and returns the result of Close, or the cause of the
// end of ctx.
func (c *Parts) AwaitEnd(ctx context.Context) error {
	select {
	case <-c.ended:
		return c.result
	case <-ctx.Done():
		return fault.Op("close", "client", context.Cause(ctx))
	}
}

func (c *Parts) end(ctx context.Context, released bool) error {
	c.Record.Close(ctx, released)
	c.closeKindStates()
	c.Watchdog.Close()
	c.Sender.Settle(ctx) // late commands first: the undo must come after them
	c.Undo.Close(ctx)
	c.Notifier.Close()
	c.Sender.Finish()
	connect.StopStraying(c.Sender.Client)
	if c.owned {
		c.Rueidis.Close()
	}
	if err := c.Reporter.Close(ctx, c.Config.RetryBudget); err != nil {
		return fault.Op("close", "client", err)
	}
	return nil
}
