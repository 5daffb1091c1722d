package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// undoLater makes the server's state of an ownership equal to the client's, in the background:
// after a delay, and for as long as an acquisition may be executed late. lease is the longest
// that the server may have given it.
func (t *ownership) undoLater(delay, lease time.Duration) {
	t.mu.Lock()
	plan := undoPlan{
		key: t.lock.key, delay: delay, lease: lease,
		late:       lease < permanentLease && t.doubt.mayComeLate(t.client.clock(), max(lease, t.span())), // else a mark stops it
		generation: t.doubt.sentIn,
	}
	dead := t.phase == over
	t.mu.Unlock()
	if dead {
		t.client.undo.add(t.lastRelease(), plan)
		return
	}
	t.client.undo.add(t, plan)
}

// undo is part of [undoable].
func (t *ownership) undo(ctx context.Context, stop <-chan struct{}) transport.Outcome {
	if !t.turn.TryLock() {
		return transport.TryLater // another command for it is under way
	}
	defer t.turn.Unlock()
	return t.setRight(ctx, stop)
}

// setRight is undo with the turn held.
func (t *ownership) setRight(ctx context.Context, stop <-chan struct{}) transport.Outcome {
	a, err := t.sendCount(ctx, stop)
	if err != nil {
		return transport.Classify(err)
	}
	t.countSent(a)
	return transport.Answered
}

// countSent takes note of what the background has found.
func (t *ownership) countSent(a releaseAnswer) {
	t.mu.Lock()
	phase := t.phase
	t.mu.Unlock()
	if phase == releasing && a.count == 0 {
		if a.Null && !t.explains(a) {
			t.lose(ErrLost, "it was gone when it was released")
			return
		}
		t.finishRelease(a.Answer)
		return
	}
	if freed := a.Message.IsInt64(); freed && phase == over {
		t.observe(Event{Type: EventUndone})
	}
}

// lastRelease is what undoes an ownership that is over. It is kept instead of the
// ownership, because there may be many.
type lastRelease struct {
	lock  *primitive
	owner Owner
	call  call
}

func (t *ownership) lastRelease() *lastRelease {
	return &lastRelease{t.lock, t.owner, t.protocol.releaseCall(t, 0, 0)}
}

// undo is part of [undoable]. It needs no turn: nothing is sent for the ownership any more
// but what finds it gone.
func (r *lastRelease) undo(ctx context.Context, stop <-chan struct{}) transport.Outcome {
	c := r.lock.client
	a, err := c.sender.Call(ctx, stop, r.call.cmd, r.call.keys, r.call.args)
	switch {
	case transport.HasCode(err, "WRONGTYPE"): // somebody put something else in the place of the lock
		return transport.Answered
	case err != nil:
		return transport.Classify(err)
	case a.Message.IsInt64() && c.options.Observer != nil:
		c.reporter.observe(Event{Type: EventUndone, Kind: r.lock.spec.kind, Name: r.lock.name, Owner: r.owner})
	}
	return transport.Answered
}
