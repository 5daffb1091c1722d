package latchkey

import (
	"context"
	"time"
)

// undoLater has the server's state of a tenure made that of the client in the background:
// after a delay, and for as long as an acquisition may be executed late. lease is the
// longest that the server may have given it.
func (t *tenure) undoLater(delay, lease time.Duration) {
	t.mu.Lock()
	plan := undoPlan{
		key: t.lock.key, delay: delay, lease: lease,
		late: lease < permanentLease && t.mayComeLate(lease), // else a mark stops it
		era:  t.doubtEra,
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
func (t *tenure) undo(ctx context.Context, stop <-chan struct{}) verdict {
	if !t.turn.try() {
		return notNow // another command for it is under way
	}
	defer t.turn.give()
	return t.setRight(ctx, stop)
}

// setRight is undo with the turn held.
func (t *tenure) setRight(ctx context.Context, stop <-chan struct{}) verdict {
	a, err := t.settle(ctx, stop)
	if err != nil {
		return judge(err)
	}
	t.settled(a)
	return answered
}

// settled takes note of what the background has found.
func (t *tenure) settled(a answer) {
	t.mu.Lock()
	phase := t.phase
	t.mu.Unlock()
	if phase == leaving && a.count == 0 {
		if a.null && !t.explains(a) {
			t.lose(ErrLost, "it was gone when it was released")
			return
		}
		t.gone(a)
		return
	}
	if freed := a.message.IsInt64(); freed && phase == over {
		t.observe(Event{Type: EventUndone})
	}
}

// lastRelease is what undoes a tenure that is over. It is kept instead of that, because
// there may be many.
type lastRelease struct {
	lock  *primitive
	owner Owner
	call  call
}

func (t *tenure) lastRelease() *lastRelease {
	return &lastRelease{t.lock, t.owner, t.lock.kind.protocol.release(t, 0, 0)}
}

// undo is part of [undoable]. It needs no turn: nothing is sent for the tenure any more
// but what finds it gone.
func (r *lastRelease) undo(ctx context.Context, stop <-chan struct{}) verdict {
	c := r.lock.client
	a, err := c.caller.call(ctx, stop, r.call.cmd, r.call.keys, r.call.args)
	switch {
	case hasCode(err, "WRONGTYPE"): // somebody put something else in the place of the lock
		return answered
	case err != nil:
		return judge(err)
	case a.message.IsInt64() && c.options.Observer != nil:
		c.reporter.observe(Event{Type: EventUndone, Kind: r.lock.kind.kind, Name: r.lock.name, Owner: r.owner})
	}
	return answered
}
