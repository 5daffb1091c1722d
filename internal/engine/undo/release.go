package undo

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// Release is the undo of an ownership that is over: it sends the release once more. It is kept
// instead of the ownership to save memory, because there may be many.
type Release struct {
	Sender *transport.Sender
	Clock  func() lease.Stamp
	Call   script.Call
	Kept   *lease.Bound // until when the lock stays taken, or nil
	Undone func()       // is called if there was something to undo; or nil
}

// Undo implements [Undoable]. It locks nothing: any other command for what it releases finds it
// gone.
func (r *Release) Undo(ctx context.Context, stop <-chan struct{}) outcome.Outcome {
	release := r.Call
	if r.Kept != nil {
		release = script.Keeping(release, r.Kept.KeptFor(r.Clock()))
	}
	a, err := r.Sender.Call(ctx, stop, release)
	switch {
	case outcome.HasCode(err, "WRONGTYPE"): // another object has taken the place of the lock
		return outcome.Answered
	case err != nil:
		return outcome.Classify(err)
	case r.Undone != nil && script.Freed(a):
		r.Undone()
	}
	return outcome.Answered
}
