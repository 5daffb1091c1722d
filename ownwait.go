package latchkey

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"
)

// A call that runs under a hold and requests the same lock with the context of the caller, instead of that of
// the hold, waits for itself. Without a deadline and without [Wait] that never ends. The client does not know
// which goroutine has a hold, so it cannot refuse the call. It logs a line if such a call has waited for a
// whole lease behind one and the same ownership of its own client.
//
// The same mistake of a reader costs a pause: a waiting writer of another client keeps new readers out, and waits for
// the hold under which the call runs. That is worth a line sooner, and with a deadline too.
//
// Calls in line are checked when the watchdog has renewed the hold; the front checks itself when the server
// has refused it. So a short wait costs nothing.

// ownWait is what is known of the ownership of its own client behind which a call waits. The mutex of the
// call's wait queue guards it, once others know the call.
type ownWait struct {
	quiet  bool          // nothing is to be logged: the wait may be long, or the line was logged
	behind uint64        // the number of that ownership at the last check, or 0
	since  time.Duration // of the first check that found it, on the monotonic clock
}

// isStuck reports, once, whether the call has waited for longer than limit behind the ownership of its client
// with that number; 0 is none.
func (w *ownWait) isStuck(behind uint64, now, limit time.Duration) bool {
	switch {
	case w.quiet:
		return false
	case w.behind != behind:
		w.behind, w.since = behind, now
		return false
	case behind == 0 || now-w.since < limit:
		return false
	}
	w.quiet = true
	return true
}

// ownWaiter is a call in line that is checked.
type ownWaiter interface {
	// isStuckBehind is isStuck for an ownership behind which the call is in line.
	isStuckBehind(o *ownership, now, limit time.Duration) bool
	what() (Kind, string)
}

// noteLimit notes whether the wait may be long: it has a deadline, or it is not for one hold to end, or the
// candidates of an election wait, which is their purpose.
func (a *acquisition) noteLimit(ctx context.Context) {
	_, limited := ctx.Deadline()
	a.quiet = limited || !a.lock.spec.isLock() || a.lock.spec.kind == KindElection
}

// isStuckBehind implements [ownWaiter].
func (a *acquisition) isStuckBehind(o *ownership, now, limit time.Duration) bool {
	return a.isStuck(o.number, now, limit)
}

// reportStuck logs a line if the first in line behind the ownership waits for itself.
func (o *ownership) reportStuck() {
	c := o.lock.client
	if name, stuck := o.lineIsStuck(); stuck {
		c.reporter.log(noticeOwnWait, name)
	}
}

func (o *ownership) lineIsStuck() (name string, stuck bool) {
	defer o.lockShard().mu.Unlock()
	if o.onKey.queue == nil {
		return "", false
	}
	return o.onKey.queue.firstIsStuck(o)
}

// firstIsStuck checks the first in line. shard.mu is held.
func (q *waitQueue) firstIsStuck(o *ownership) (name string, stuck bool) {
	if q.line.first == nil {
		return "", false
	}
	w, is := q.line.first.recipient.(ownWaiter)
	if !is || !w.isStuckBehind(o, o.lock.client.clock().Mono, o.lock.client.options.Lease) {
		return "", false
	}
	_, name = w.what()
	return name, true
}

// reportOwnWait logs a line if the call, which the server has refused, waits for itself.
func (a *acquisition) reportOwnWait() {
	if !a.quiet && a.isBehindOwn() {
		a.lock.client.reporter.log(noticeOwnWait, a.lock.Name())
	}
}

// reportBehindOwnReader logs a line if a call that wants to read has waited for a while behind a writer that waits for
// a reader of this client. If the call runs under that hold, it delays itself.
func (a *acquisition) reportBehindOwnReader() {
	c := a.lock.client
	if !a.behindOwnReader || c.clock().Since(a.began) < c.patienceInFront() {
		return
	}
	c.reporter.log(noticeOwnReader, a.lock.Name())
}

// isBehindOwn checks the call against the oldest ownership of its client on the key.
func (a *acquisition) isBehindOwn() bool {
	c := a.lock.client
	shard, hash := c.waitQueues.locate(a.lock.key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	for o := range c.registry.live.on(a.lock.key, hash) {
		return a.isStuck(o.number, c.clock().Mono, c.options.Lease)
	}
	return a.isStuck(0, c.clock().Mono, c.options.Lease)
}

// withOwnHold completes the error of a wait that ended while a call of this client held the key: with what is left of
// that hold, and its note. Nobody else knows such an error yet.
func (c *Client) withOwnHold(key string, err error) error {
	if err == nil {
		return nil
	}
	return c.addOwnHold(key, err)
}

// addOwnHold is separate because its variables cost an allocation.
func (c *Client) addOwnHold(key string, err error) error {
	var busy *busyError
	if !errors.As(err, &busy) || !busy.bare {
		return err
	}
	busy.bare, busy.label = false, c.Label()
	if o := c.registry.newestOn(key); o != nil {
		busy.note, busy.reads = c.noteOf(o), o.lock.spec.side == KindRead
		o.mu.Lock()
		busy.left = max(o.valid(), -1)
		o.mu.Unlock()
	}
	return err
}

// noteOf returns the note of an ownership of this client, or "".
func (c *Client) noteOf(o *ownership) string {
	_, field := recordOf(o.owner())
	return c.record.noteOf(field)
}

// errUnderHold advises a call that seems to run under the hold for which it has waited.
var errUnderHold = errors.New("if this call runs under that hold, use the context of the hold")

// adviceFor returns advice for a call with that context that found the lock busy, or nil. The call seems to run under
// a hold of its client if the program has made a context for the work under that hold from the same context, or if its
// context carries a hold of the lock, under an owner other than that of the call.
func (p *primitive) adviceFor(ctx context.Context, err error) error {
	if !errors.Is(err, ErrNotAcquired) {
		return nil
	}
	var busy *busyError
	if !errors.As(err, &busy) || !busy.here && !busy.inside {
		return nil
	}
	if p.HoldFrom(ctx).Err() == nil || p.hasWorkUnder(ctx) {
		return errUnderHold
	}
	return nil
}

// mostAsked is how many ownerships of a key hasWorkUnder asks.
const mostAsked = 64

// hasWorkUnder reports whether a hold of the key has a context that ends with ctx.
func (p *primitive) hasWorkUnder(ctx context.Context) bool {
	root := rootOf(ctx)
	if root.Done() == nil || !reflect.ValueOf(root).Comparable() {
		return false // it is the root of everything
	}
	var held []*ownership
	shard, hash := p.client.waitQueues.locate(p.key)
	shard.mu.Lock()
	for o := range p.client.registry.live.on(p.key, hash) {
		if held = append(held, o); len(held) == mostAsked {
			break
		}
	}
	shard.mu.Unlock()
	return slices.ContainsFunc(held, func(o *ownership) bool { return o.hasWorkUnder(root) })
}

func (o *ownership) hasWorkUnder(root context.Context) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for h := range o.holds.roots {
		if h.lifecycle.rare != nil && h.lifecycle.rare.dependents[root] != nil {
			return true
		}
	}
	return false
}
