package latchkey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// Close ends everything: new calls and waiters get ErrClosed, live holds end with that
// cause and are released, background work stops, and a connection that the client opened
// is closed. Close delivers pending log records and events, for Options.RetryBudget at
// most. When it returns nil, no goroutine is left.
//
// If ctx ends first, Close returns its error, and the remaining work goes on in the
// background. Locks that could not be released end with their leases. If ctx has already
// ended, as it often has at the end of a program, Close uses Options.RetryBudget instead.
// It also does if ctx ends because the client is closed, as the context of a hold or of a
// leadership does; the deadline of such a context counts if it is earlier. Further calls wait
// for the first and return the same result.
func (c *Client) Close(ctx context.Context) error {
	ctx, cancel := c.engine.closeContext(ctx)
	defer cancel(nil)
	if c.engine.startClosing() {
		go c.engine.finish(ctx, c.engine.endHolds())
	}
	select {
	case <-c.engine.closed:
		return c.engine.result
	case <-ctx.Done():
		return fault.Op("close", "client", context.Cause(ctx))
	}
}

// closeContext returns the context of a Close. It ends with the given one, unless that has ended
// before or ends because the client is closed. Its cause is the error to return.
func (c *engine) closeContext(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	closing, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	deadline, bounded := ctx.Deadline()
	late := ctx.Err() != nil
	stop := context.AfterFunc(ctx, func() {
		ended := ctx
		if late || errors.Is(context.Cause(ctx), fault.ErrClosed) {
			limit := c.options.RetryBudget
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
func (c *engine) startClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if async.IsClosed(c.closing) {
		return false
	}
	close(c.closing)
	return true
}

// endHolds ends every hold with ErrClosed at once, and returns the ownerships whose locks
// must be released.
func (c *engine) endHolds() []*ownership {
	all := c.registry.all()
	return slices.DeleteFunc(all, func(o *ownership) bool {
		if o.isReleasing() {
			return false // its Unlock is under way, and reports the outcome
		}
		next, ended := o.end(fault.ErrClosed)
		if !ended {
			return true
		}
		o.leaveFree(next, 0)
		return o.lock.spec.party
	})
}

// finish does the work of Close in order: waiters leave, locks are released, unknown
// outcomes are settled, helpers stop, and the last reports are delivered.
func (c *engine) finish(ctx context.Context, ended []*ownership) {
	defer close(c.closed)
	c.working.Wait()
	c.releaseAll(ctx, append(ended, c.endHolds()...))
	c.record.Close(ctx, c.result == nil)
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
	if err := c.reporter.Close(ctx, c.options.RetryBudget); err != nil && c.result == nil {
		c.result = fault.Op("close", "client", err)
	}
}

// closeReleases is how many locks Close releases at a time.
const closeReleases = 64

// releaseAll frees the locks of ownerships that are over. If a release fails, many others
// will fail in the same way: the first error stands for all.
func (c *engine) releaseAll(ctx context.Context, ended []*ownership) {
	var failed atomic.Int32
	async.ForEach(closeReleases, ended, func(o *ownership) {
		if failed.Load() > 0 {
			failed.Add(1) // on a silent server each of the rest would take as long again
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
	if err := o.sendMu.Lock(ctx); err != nil {
		return fault.Op("close", o.lock.Name(), fault.ErrUnknownOutcome, transport.Unavailable(fault.ContextError(ctx)))
	}
	defer o.sendMu.Unlock()
	unlocking := o.isReleasing()
	if !unlocking && o.wasReleased() {
		return nil
	}
	a, err := o.sendCount(ctx, nil)
	switch {
	case err != nil:
		return fault.Op("close", o.lock.Name(), err)
	case unlocking:
		o.countSent(a)
	default:
		o.observeEnd(report.Released, nil)
	}
	return nil
}

// isReleasing reports whether the last release has begun and its outcome is not known
// yet.
func (o *ownership) isReleasing() bool { return o.currentPhase() == releasing }

// wasReleased reports whether the ownership ended by a release.
func (o *ownership) wasReleased() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.phase == over && o.holds.cause == nil
}
