package barrier

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// This file ends a generation for a party: its outcome, or its leave.

// end has the party leave unless it knows that its generation is over, and returns the outcome. err
// is why it stopped waiting.
func (p *Party) end(ctx context.Context, err error) error {
	if err != nil || !p.GoesOn() {
		if next, ended := p.Ownership.End(nil); ended { // its lease was renewed until now
			p.Ownership.Leave(next, false, 0)
		}
	}
	switch {
	case err == nil:
		return p.generationOutcome()
	case !p.Known && !p.doubt:
		p.Sent.Done()
		return err
	}
	err = line.WithContextEnd(ctx, err)
	return p.leave(ctx, reasonToLeave(err), err)
}

// leave has the party leave because of err, and returns the outcome. It does not wait for a server
// that was silent.
func (p *Party) leave(ctx context.Context, why string, err error) error {
	c, on := p.Leaving(why), transport.Terms{Patience: retry.LongPause}
	if errors.Is(err, fault.ErrNotAcquired) || errors.Is(err, fault.ErrClosed) {
		on.Patience = p.Client.Sender.Patience
	}
	a, failed := p.Client.Sender.CallOn(p.Client.Sender.Detached(ctx), nil, on, c)
	v, unclear := barrierViewOf(a.Message)
	arrived := ""
	switch {
	case failed != nil || unclear != nil:
		return p.leaveLater(c, err)
	case p.Known:
		arrived = v.Index
		v.Generation, v.Index = p.View.Generation, p.View.Index
	default:
		p.Sent.Done()
	}
	p.View = v
	switch {
	case v.Who != p.Ownership.Wire || v.How != why:
		return errors.Join(p.readArrival(), p.generationOutcome())
	case fault.IsContextEnd(err): // the server has now said that not all had arrived
		return errors.Join(p.incomplete(arrived), fault.ContextEnd(err))
	}
	return err
}

// leaveLater has the party leave in the background.
func (p *Party) leaveLater(c script.Call, err error) error {
	if p.Known {
		left := &undo.Release{Sender: p.Client.Sender, Clock: p.Client.Clock, Call: c}
		p.Client.Undo.Add(left, undo.Plan{Key: p.Names.Key, Lease: p.Request.Lease})
	} else {
		p.Sent.FollowUp = c
		p.Sent.SettleLater()
	}
	return errors.Join(err, fault.ErrUnknownOutcome)
}

// generationOutcome says how a finished generation ended.
func (p *Party) generationOutcome() error {
	p.GenerationEnded(p.arrival.Generation)
	switch {
	case p.GoesOn():
		p.GoOn()
		return nil
	case p.View.How == Done:
		return nil
	}
	return &brokenError{p.View}
}

// reasonToLeave is the reason that the other parties see when a party leaves because of err.
func reasonToLeave(err error) string {
	switch {
	case errors.Is(err, fault.ErrClosed):
		return Closed
	case errors.Is(err, fault.ErrBroken):
		return Crashed
	case errors.Is(err, context.Canceled):
		return Left
	}
	return Timeout
}
