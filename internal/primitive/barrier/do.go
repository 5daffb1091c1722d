package barrier

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// Do is Await, fn, and the wait until fn has returned in all parties.
func (b *Barrier) Do(ctx context.Context, fn func(context.Context) error, settings []request.Setting) (err error) {
	if fn == nil {
		return fault.Op("do", b.Name(), fault.ErrNoFunction)
	}
	p, err := b.beginParty(ctx, "do", Enter, settings)
	if err != nil {
		return err
	}
	err = p.meet(ctx, arrivingParty{p})
	if err == nil && (p.View.ends < 0 || !p.Ownership.Live()) {
		err = p.meet(ctx, p) // the second generation is over, or will be: to learn how it ends
	}
	if err != nil {
		b.Client.Done()
		return err
	}
	s := p.stay(ctx)
	defer func() { err = errors.Join(err, s.leave(ctx)) }()
	return fn(s.inside)
}

// barrierStay is a party in the second generation of a Do, in which it is from the start. While its
// function runs, a goroutine watches the generation. Whichever comes first ends the stay: the
// goroutine finds that the generation is over for the party, or the function returns, and the party
// arrives.
type barrierStay struct {
	party  *Party
	lease  *ownership.Hold // of the party
	inside context.Context // of the function
	end    context.CancelCauseFunc
	stop   context.CancelFunc // ends the watch
	over   chan error         // the outcome; closed without one if the function returned first
}

// GoesOn reports whether the first generation of a Do is complete.
func (p *Party) GoesOn() bool { return p.Stage == Enter && p.View.How == Done }

// GoOn moves the party to the second generation of its Do.
func (p *Party) GoOn() {
	p.View = View{How: Waiting, Generation: p.View.Who, ends: p.View.ends}
	p.arrival.Generation, _ = strconv.ParseInt(p.View.Generation, 10, 64)
	p.Stage = Run
}

// stay begins the stay. The goroutine takes over the caller's duty to call Done of the client.
func (p *Party) stay(ctx context.Context) *barrierStay {
	s := &barrierStay{party: p, lease: &p.Ownership.First, over: make(chan error, 1)}
	s.inside, s.end = context.WithCancelCause(ctx)
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	unrenewed := func(cause error) {
		if !errors.Is(cause, fault.ErrNotHeld) { // otherwise the party has ended it
			s.end(p.endOfLease(cause))
		}
	}
	if err := hold.OnEnd(s.lease, unrenewed); err != nil {
		unrenewed(err)
	}
	go s.watch(watching)
	return s
}

// endOfLease explains why the lease of the party has ended.
func (p *Party) endOfLease(cause error) error {
	if errors.Is(cause, fault.ErrClosed) {
		return cause
	}
	generation := strconv.FormatInt(p.arrival.Generation, 10)
	return &brokenError{View{How: barrierUnrenewed, Who: p.Ownership.Wire, Generation: generation}}
}

// watch waits until the generation is over for the party, or the watch ends. It sends nothing for
// the first poll pause: most functions return earlier.
func (s *barrierStay) watch(ctx context.Context) {
	defer close(s.over)
	p := s.party
	err := retry.Rest(ctx, p.Client.Closing, line.PauseUntil(p.View.ends, p.Client.PollPause()))
	if err == nil {
		err = p.wait(ctx)
	}
	if err != nil && ctx.Err() != nil && !errors.Is(err, fault.ErrClosed) {
		return
	}
	defer p.Client.Done()
	err = p.outcome(context.WithoutCancel(ctx), err)
	s.end(err)
	s.over <- err
}

// leave ends the stay when the function has returned, and returns the outcome.
func (s *barrierStay) leave(ctx context.Context) error {
	s.stop()
	if err, over := <-s.over; over {
		return err
	}
	p := s.party
	s.end(nil)
	defer p.Client.Done()
	if err := s.lease.Err(); err != nil {
		return p.outcome(ctx, p.endOfLease(err))
	}
	if ctx.Err() != nil {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.Client.Config.RetryBudget)
		defer cancel()
		ctx = bounded
	}
	return p.meet(ctx, returningParty{arrivingParty{p}})
}

// returningParty is a party whose function has returned, and that the server has not counted yet.
type returningParty struct{ arrivingParty }

// Attempt implements [line.Attempter].
func (r returningParty) Attempt(ctx context.Context, _ int) (time.Duration, error) {
	p := r.Party
	answer, err := p.Client.Send(ctx, p.Returning())
	if err != nil {
		return -1, err
	}
	v, err := barrierViewOf(answer.Message)
	if err != nil {
		return -1, err
	}
	p.View, p.Counted = v, true
	return 0, nil
}

// Returning returns the command with which the party arrives in the second generation.
func (p *Party) Returning() script.Call {
	return script.NewCall(script.BarrierLook, p.All(),
		p.View.Generation, p.Ownership.Wire, p.Client.Publish, p.Names.Channel, "1")
}
