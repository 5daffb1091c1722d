package latchkey

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// closeContext returns the context of a Close. It ends with the given one, unless that has ended
// before or ends because the client is closed. Its cause is the error to return.
func (c *parts) closeContext(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	closing, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	deadline, bounded := ctx.Deadline()
	late := ctx.Err() != nil
	stop := context.AfterFunc(ctx, func() {
		ended := ctx
		if late || errors.Is(context.Cause(ctx), fault.ErrClosed) {
			limit := c.config.RetryBudget
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

// startClosing reports whether this is the first call of Close.
func (c *parts) startClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if async.IsClosed(c.closing) {
		return false
	}
	close(c.closing)
	return true
}

// end ends the parts when no call of the program uses them any more, and all locks are released if released is true:
// unknown outcomes are settled, helpers stop, and the last reports are delivered.
func (c *parts) end(ctx context.Context, released bool) error {
	c.record.Close(ctx, released)
	c.closeKindStates()
	c.watchdog.Close()
	c.sender.Settle(ctx) // late commands first: the undo must come after them
	c.undo.Close(ctx)
	c.notifier.Close()
	c.sender.Finish()
	transport.StopStraying(c.sender.Client)
	if c.owned {
		c.rueidis.Close()
	}
	if err := c.reporter.Close(ctx, c.config.RetryBudget); err != nil {
		return fault.Op("close", "client", err)
	}
	return nil
}
