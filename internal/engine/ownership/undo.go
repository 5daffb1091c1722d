package ownership

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// UndoLater makes the server's state of an ownership match the client's, in the background: after a
// delay, and for as long as an acquisition may be executed late. granted is the longest lease that
// the server may have given it.
func (o *Ownership) UndoLater(delay, granted time.Duration) {
	o.mu.Lock()
	plan := undo.Plan{
		Key:   o.Names.Key,
		Delay: delay,
		Lease: granted,
		Late: granted < lease.Permanent && // else a mark stops it
			o.Doubt.MayComeLate(o.Client.Clock(), max(granted, o.Lease.Span())),
		Generation: o.Doubt.SentIn(),
	}
	dead := o.Phase == Over
	o.mu.Unlock()
	if dead {
		o.Client.Undo.Add(o.LastRelease(), plan)
		return
	}
	o.Client.Undo.Add(o, plan)
}

// Undo implements [undo.Undoable].
func (o *Ownership) Undo(ctx context.Context, stop <-chan struct{}) outcome.Outcome {
	if !o.SendMu.TryLock() {
		return outcome.TryLater // another command for it is in flight
	}
	defer o.SendMu.Unlock()
	return o.UndoLocked(ctx, stop)
}

// UndoLocked is Undo with SendMu held.
func (o *Ownership) UndoLocked(ctx context.Context, stop <-chan struct{}) outcome.Outcome {
	return outcome.Classify(o.CompleteRelease(ctx, stop))
}

// CompleteRelease completes a release that another goroutine has begun. SendMu is held.
func (o *Ownership) CompleteRelease(ctx context.Context, stop <-chan struct{}) error {
	a, err := o.sendCount(ctx, stop)
	if err == nil {
		o.undoAnswered(a)
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Doubt.Release = o.Doubt.Release || a.Doubt
	return err
}

// undoAnswered notes the answer to an undo in the background.
func (o *Ownership) undoAnswered(a releaseAnswer) {
	phase := o.CurrentPhase()
	if phase == Releasing && a.count == 0 {
		if !o.goneAtRelease(a) {
			o.FinishRelease(a.Answer)
		}
		return
	}
	if script.Freed(a.Answer) && phase == Over {
		o.Observe(report.Undone, nil, nil)
	}
}

// LastRelease returns what undoes the ownership, which is over.
func (o *Ownership) LastRelease() *undo.Release {
	r := &undo.Release{Sender: o.Client.Sender, Clock: o.Client.Clock}
	var to Release
	o.mu.Lock()
	if o.Holds.Cause != nil && o.KeptUntil != nil { // lost before the server confirmed a release
		r.Kept, to.Keep = o.KeptUntil, o.KeptUntil.D
	}
	o.mu.Unlock()
	r.Call = o.ReleaseCall(to, nil)
	if p, number, owner := o.Lock, o.Number, o.Owner(); !p.Spec.Party { // that a party has left is not an undo
		r.Undone = func() { p.Client.Reporter.Observe(nil, p.Event(report.Undone, number, owner)) }
	}
	return r
}
