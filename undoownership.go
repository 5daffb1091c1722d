package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// undoLater makes the server's state of an ownership match the client's, in the background: after a
// delay, and for as long as an acquisition may be executed late. granted is the longest lease that the
// server may have given it.
func (o *ownership) undoLater(delay, granted time.Duration) {
	o.mu.Lock()
	plan := undo.Plan{
		Key: o.lock.names.Key, Delay: delay, Lease: granted,
		Late:       granted < lease.Permanent && o.doubt.MayComeLate(o.lock.client.Clock(), max(granted, o.span())), // else a mark stops it
		Generation: o.doubt.SentIn(),
	}
	dead := o.phase == over
	o.mu.Unlock()
	if dead {
		o.lock.client.Undo.Add(o.lastRelease(), plan)
		return
	}
	o.lock.client.Undo.Add(o, plan)
}

// Undo implements [undo.Undoable].
func (o *ownership) Undo(ctx context.Context, stop <-chan struct{}) transport.Outcome {
	if !o.sendMu.TryLock() {
		return transport.TryLater // another command for it is in flight
	}
	defer o.sendMu.Unlock()
	return o.undoLocked(ctx, stop)
}

// undoLocked is Undo with sendMu held.
func (o *ownership) undoLocked(ctx context.Context, stop <-chan struct{}) transport.Outcome {
	a, err := o.sendCount(ctx, stop)
	if err != nil {
		return transport.Classify(err)
	}
	o.countSent(a)
	return transport.Answered
}

// countSent notes the answer to an undo in the background.
func (o *ownership) countSent(a releaseAnswer) {
	phase := o.currentPhase()
	if phase == releasing && a.count == 0 {
		if a.Null && !o.explains(a) {
			o.lose(fault.ErrLost, "the key was gone when the hold was released")
			return
		}
		o.finishRelease(a.Answer)
		return
	}
	if script.Freed(a.Answer) && phase == over {
		o.observe(report.Undone, nil, nil)
	}
}

// lastRelease undoes an ownership that is over. It is kept instead of the ownership to save memory,
// because there may be many.
type lastRelease struct {
	lock   *primitive
	number uint64 // of the ownership
	owner  identity.Owner
	call   script.Call
	kept   *lease.Bound // until when the lock stays taken, or nil
}

func (o *ownership) lastRelease() *lastRelease {
	r := &lastRelease{lock: o.lock, number: o.number, owner: o.owner(), kept: o.keptIfLost()}
	var to release
	if r.kept != nil {
		to.keep = r.kept.D
	}
	r.call = o.protocol().releaseCall(o, to, nil)
	return r
}

// Undo implements [undo.Undoable]. It needs no turn: any other command for the ownership finds it gone.
func (r *lastRelease) Undo(ctx context.Context, stop <-chan struct{}) transport.Outcome {
	c := r.lock.client
	release := r.call
	if r.kept != nil {
		release = release.Keeping(r.kept.KeptFor(c.Clock()))
	}
	a, err := c.Sender.Call(ctx, stop, release.Cmd, release.Keys, release.Args)
	switch {
	case transport.HasCode(err, "WRONGTYPE"): // another object has taken the place of the lock
		return transport.Answered
	case err != nil:
		return transport.Classify(err)
	case !r.lock.spec.party && script.Freed(a): // that a party has left is not an undo
		c.Reporter.Observe(nil, r.lock.event(report.Undone, r.number, r.owner))
	}
	return transport.Answered
}
