package latchkey

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// Close ends everything: new calls and waiters get ErrClosed, live holds end with
// that cause and are released, background work stops, and a connection that the
// client opened is closed. Close delivers what waits for the logger and the
// observer, for Options.RetryBudget at most. When it returns nil, no goroutine is left.
//
// If ctx ends first, Close returns its error and the rest ends by itself; locks
// that could not be released come back at the end of their leases. If ctx has already
// ended, as it often has at the end of a program, Close uses Options.RetryBudget
// instead. Further calls wait for the first, and return what it
// returned.
func (c *Client) Close(ctx context.Context) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), c.options.RetryBudget)
		defer cancel()
	}
	if c.startClosing() {
		go c.finish(ctx, c.endHolds())
	}
	select {
	case <-c.closed:
		return c.result
	case <-ctx.Done():
		return fail("close", "client", transport.ContextError(ctx))
	}
}

// startClosing reports whether this call is the first.
func (c *Client) startClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.closing:
		return false
	default:
		close(c.closing)
		return true
	}
}

// endHolds tells every hold at once that the client is closed, and returns those
// whose locks are to be released.
func (c *Client) endHolds() []*ownership {
	all := c.registry.all()
	return slices.DeleteFunc(all, func(o *ownership) bool {
		if o.isReleasing() {
			return false // its Unlock is under way, and says what came of it
		}
		if !o.end(ErrClosed) {
			return true
		}
		o.endHold(0)
		return o.lock.spec.lost != nil
	})
}

// finish is the work of Close, in its order: waiters leave, locks are released,
// what is unknown is settled, the helpers stop, and the last of it is told.
func (c *Client) finish(ctx context.Context, ended []*ownership) {
	defer close(c.closed)
	c.working.Wait()
	c.releaseAll(ctx, append(ended, c.endHolds()...))
	c.record.close(ctx, c.result == nil)
	c.closeKindStates()
	c.watchdog.close()
	c.sender.Settle(ctx) // what comes late is undone afterwards, not before
	c.undo.close(ctx)
	c.notifier.close()
	c.sender.Finish()
	if c.owned {
		c.rueidis.Close()
	}
	if err := c.reporter.close(ctx, c.options.RetryBudget); err != nil && c.result == nil {
		c.result = fail("close", "client", err)
	}
}

// closeReleases is how many locks Close releases at a time.
const closeReleases = 64

// releaseAll frees the locks of ownerships that are over. If that fails, it fails for
// many in the same way: the first error stands for all.
func (c *Client) releaseAll(ctx context.Context, ended []*ownership) {
	var failed atomic.Int32
	inParallel(closeReleases, ended, func(o *ownership) {
		if failed.Load() > 0 {
			failed.Add(1) // a silent server would cost the rest as much again
			return
		}
		if err := o.releaseAtClose(ctx); err != nil && transport.Classify(err) != transport.Refused && failed.Add(1) == 1 {
			c.result = err
		}
	})
	if n := failed.Load(); n > 1 {
		c.result = fmt.Errorf("%w (and %d more)", c.result, n-1)
	}
}

func (o *ownership) releaseAtClose(ctx context.Context) error {
	if err := o.turn.Lock(ctx); err != nil {
		return fail("close", o.lock.Name(), ErrUnknownOutcome, transport.Unavailable(transport.ContextError(ctx)))
	}
	defer o.turn.Unlock()
	unlocking := o.isReleasing()
	if !unlocking && o.wasReleased() {
		return nil
	}
	a, err := o.sendCount(ctx, nil)
	switch {
	case err != nil:
		return fail("close", o.lock.Name(), err)
	case unlocking:
		o.countSent(a)
	default:
		o.observeEnd(EventReleased, nil)
	}
	return nil
}

// isReleasing reports whether the last release has begun and nothing has come of it yet.
func (o *ownership) isReleasing() bool { return o.currentPhase() == releasing }

// wasReleased reports whether the ownership ended by a release.
func (o *ownership) wasReleased() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.phase == over && o.rarely().cause == nil
}
