package latchkey

import (
	"context"
	"errors"
	"time"
)

// attempt makes one attempt, as the caller counts it: trouble on
// the way is overcome within the retry budget. A nil error means that the ownership
// has begun. ErrNotAcquired comes with what is left of the holder's lease.
func (t *ownership) attempt(ctx context.Context, r *request, round int) (left time.Duration, err error) {
	left = -1
	a, err := t.sendAcquire(ctx, r, 1, round)
	if err == nil && a.plain && a.null {
		// SET NX was refused, by whoever or whatever is there; it may be ourselves,
		// if the answer to a first try was lost.
		t.noteDoubt(a)
		a, err = t.sendAcquire(ctx, r, 1, round+1)
	}
	t.noteDoubt(a)
	err = r.waitForSet(err)
	if err == nil {
		left, err = t.weigh(r, a)
	}
	t.observe(Event{Type: EventAttempt, Err: err})
	return left, err
}

// weigh reads the answer to an attempt.
func (t *ownership) weigh(r *request, a answer) (left time.Duration, err error) {
	if a.message.IsInt64() {
		if t.waits && t.lock.spec.side == KindWrite {
			t.markQueued()
		}
		ms, err := a.message.AsInt64()
		if err != nil {
			return 0, errors.Join(errReply, err)
		}
		left = fromMillis(ms)
		return left, t.busyWith("", left)
	}
	if a.message.IsArray() {
		if t.fairWaiter != nil {
			return t.readTicket(a)
		}
		return t.heldBy(a)
	}
	return 0, t.accept(r, a)
}

// accept begins the ownership, unless the answer took so long that nothing of the
// lease is left.
func (t *ownership) accept(r *request, a answer) error {
	select {
	case <-t.client.closing:
		t.markUnwanted()
		return ErrClosed
	default:
	}
	if r.lease-driftMargin(r.lease) <= t.client.clock().since(a.sent) {
		t.markUnwanted()
		return unavailable(errLate)
	}
	t.begin(r, a)
	return nil
}

// markUnwanted marks what the server has granted for undo.
func (t *ownership) markUnwanted() {
	for _, each := range append([]*ownership{t}, t.batch...) {
		each.mu.Lock()
		each.doubt.unwanted = true
		each.mu.Unlock()
	}
}

// sendAcquire sends an acquisition.
func (t *ownership) sendAcquire(ctx context.Context, r *request, count, round int) (answer, error) {
	t.counting(count)
	c := t.lock.spec.protocol.acquireCall(t, r.lease, count, round)
	a, err := t.client.sender.callOn(ctx, t.client.closing, t.terms(r.waits), c.cmd, c.keys, c.args)
	if err == nil && t.client.acks != nil && granted(a) {
		return t.client.confirm(ctx, a, t.lock.spec.protocol.acquireCall(t, r.lease, count, round+1))
	}
	return a, err
}

// confirm has an acquisition that was granted confirmed: it is sent once more, which
// changes nothing unless a failover has forgotten it meanwhile. Whatever comes of it,
// the first one was granted; an error leaves that in doubt, unless it is that there are
// too few replicas, after which it is undone at once.
func (c *Client) confirm(ctx context.Context, first answer, again call) (answer, error) {
	a, err := c.sender.call(ctx, c.closing, again.cmd.confirmed(c.acks), again.keys, again.args)
	switch {
	case err != nil && !errors.Is(err, ErrNotReplicated):
		a.doubt, a.doubtAt, a.doubtGeneration = true, a.sent, noGeneration
	case !a.doubt:
		a.doubt, a.doubtAt, a.doubtGeneration = first.doubt, first.doubtAt, first.doubtGeneration
	}
	a.sent = first.sent
	return a, err
}

var errLate = errors.New("latchkey: the lease was over when the answer came")
