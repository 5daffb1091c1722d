package ownership

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Close is Close of a Client.
func (c *Engine) Close(ctx context.Context) error {
	ctx, cancel := c.CloseContext(ctx)
	defer cancel(nil)
	if c.StartClosing() {
		go c.finish(ctx, c.endHolds())
	}
	select {
	case <-c.closed:
		return c.result
	case <-ctx.Done():
		return fault.Op("close", "client", context.Cause(ctx))
	}
}

// endHolds ends every hold with ErrClosed at once, and returns the ownerships whose locks
// must be released.
func (c *Engine) endHolds() []*Ownership {
	all := c.Registry.All()
	return slices.DeleteFunc(all, func(o *Ownership) bool {
		if o.isReleasing() {
			return false // its Unlock is under way, and reports the outcome
		}
		next, ended := o.End(fault.ErrClosed)
		if !ended {
			return true
		}
		o.LeaveFree(next, 0)
		return o.Lock.Spec.Party
	})
}

// finish does the work of a close in order: the calls of the program end, locks are released, and the parts end.
func (c *Engine) finish(ctx context.Context, ended []*Ownership) {
	defer close(c.closed)
	c.Working.Wait()
	c.releaseAll(ctx, append(ended, c.endHolds()...))
	if err := c.End(ctx, c.result == nil); c.result == nil {
		c.result = err
	}
}

// closeReleases is how many locks Close releases at a time.
const closeReleases = 64

// releaseAll frees the locks of ownerships that are over. If a release fails, many others
// will fail in the same way: the first error stands for all.
func (c *Engine) releaseAll(ctx context.Context, ended []*Ownership) {
	var failed atomic.Int32
	async.ForEach(closeReleases, ended, func(o *Ownership) {
		if failed.Load() > 0 {
			failed.Add(1) // on a silent server each of the rest would take as long again
			return
		}
		if err := o.releaseAtClose(ctx); err != nil && outcome.Classify(err) != outcome.Refused && failed.Add(1) == 1 {
			c.result = err
		}
	})
	if n := failed.Load(); n > 1 {
		c.result = fmt.Errorf("%w (and %d more)", c.result, n-1)
	}
}

func (o *Ownership) releaseAtClose(ctx context.Context) error {
	if err := o.sendMu.Lock(ctx); err != nil {
		return fault.Op("close", o.Lock.Name(), fault.ErrUnknownOutcome, outcome.Unavailable(fault.ContextError(ctx)))
	}
	defer o.sendMu.Unlock()
	unlocking := o.isReleasing()
	if !unlocking && o.wasReleased() {
		return nil
	}
	a, err := o.sendCount(ctx, nil)
	switch {
	case err != nil:
		return fault.Op("close", o.Lock.Name(), err)
	case unlocking:
		o.undoAnswered(a)
	default:
		o.observeEnd(report.Released, nil)
	}
	return nil
}

// isReleasing reports whether the last release has begun and its outcome is not known
// yet.
func (o *Ownership) isReleasing() bool { return o.CurrentPhase() == Releasing }

// wasReleased reports whether the ownership ended by a release.
func (o *Ownership) wasReleased() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Phase == Over && o.Holds.Cause == nil
}
