package latchkey

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// reenter enters the hold again that the call is for. Without a hold and without an error, one
// is to be begun: for a.ownership, whose turn the call then has, or for a fresh owner if that
// is nil. An ownership that came to its end while its turn was awaited is looked for anew.
func (a *acquisition) reenter(ctx context.Context) (*Hold, error) {
	for {
		a.ownership, a.under = nil, nil // what was to be entered before may be over
		if ctx.Err() != nil {
			return nil, transport.ContextError(ctx)
		}
		o, err := a.lock.spec.resolve(ctx, a)
		if o == nil || err != nil {
			return nil, err
		}
		if a.note != "" && o.isGuest {
			return nil, invalid("a guest has no note: another client has made the owner")
		}
		if err := a.awaitTurn(ctx, o); err != nil {
			return nil, err
		}
		h, again, err := a.enter(ctx, o)
		if !again {
			return h, err
		}
		if err == nil {
			continue
		}
		if stopped := transport.Rest(ctx, a.lock.client.closing, transport.Jitter(transport.LongPause)); stopped != nil {
			return nil, transport.StoppedAfter(err, stopped)
		}
	}
}

// awaitTurn waits for another call of the same owner: one that uses the lock has to wait
// for the server only, one that acquires it for what that meets.
func (a *acquisition) awaitTurn(ctx context.Context, o *ownership) error {
	if o.turn.TryLock() {
		return nil
	}
	if !a.waits && !o.live() {
		return ErrNotAcquired
	}
	if o.turn.Lock(ctx) == nil {
		return nil
	}
	err := transport.ContextError(ctx)
	q := o.lock.client.waitQueues.use(o.lock.key)
	defer q.done()
	if o.live() {
		return transport.Unavailable(err)
	}
	return q.in(o.lock.spec.line).waitError(ctx, err, nil)
}

// giveTurnBack ends the turn of an ownership that others may know.
func (a *acquisition) giveTurnBack() {
	if a.hasTurn {
		a.ownership.turn.Unlock()
	}
}

// enter does what the phase of the ownership asks for, with its turn, which it keeps only if
// the ownership is to begin. again tells the caller to look for the ownership anew: at once if
// err is nil, else after a pause, in which others have the turn, the renewal above all.
func (a *acquisition) enter(ctx context.Context, o *ownership) (h *Hold, again bool, err error) {
	phase := o.currentPhase()
	if phase == acquiring {
		a.ownership, a.hasTurn = o, true
		return nil, false, nil
	}
	defer o.turn.Unlock()
	if phase != held || !o.mayBeEntered(a.under) {
		return nil, true, nil
	}
	a.ownership = o
	return a.addOne(ctx)
}

// addOne raises the count of the ownership by one. It reports whether that may succeed later.
func (a *acquisition) addOne(ctx context.Context) (h *Hold, again bool, err error) {
	o := a.ownership
	o.mu.Lock()
	count := o.holds.count + 1
	if a.renew {
		a.lease = min(a.lease, a.renewLease) // that of AtLeast is the outermost hold's
	}
	a.lease = min(a.lease, max(o.lease.limit().left(o.lock.client.clock()), MinLease))
	o.mu.Unlock()
	ans, again, err := a.askToEnter(ctx, count)
	switch {
	case again:
		return nil, true, err
	case transport.HasCode(err, "LATCHKEY_GONE"):
		o.lose(ErrLost, "it was gone when it was entered again")
		return nil, false, errors.Join(ErrNotAcquired, ErrLost)
	case err != nil:
		return nil, false, a.entryFailed(ans, err)
	}
	s, cause := o.addHold(&a.request, a.under, ans)
	if cause != nil {
		// The ownership ended while the answer was under way, and must not come to life
		// again: what the server has counted is taken back.
		o.undoLater(0, a.lease)
		return nil, false, notEntered(cause)
	}
	return newHold(s), false, nil
}

// entryFailed sets the server's count back if the re-entry may have been counted.
func (a *acquisition) entryFailed(ans transport.Answer, err error) error {
	o := a.ownership
	counted := errors.Is(err, ErrNotReplicated)
	known := counted && o.lock.client.undo.atOnce(o.undoInTurn)
	if ans.Doubt || counted && !known {
		o.undoLater(0, a.lease)
	}
	if !known && (ans.Doubt || counted) {
		return errors.Join(err, ErrUnknownOutcome)
	}
	return err
}

// askToEnter asks the server to count one hold more. If the server does not do it now, it is
// to be asked again, for as long as the call has time and the hold stands. After an attempt
// whose outcome is unknown askToEnter asks again itself: nothing else may be sent in between
// but a renewal. Otherwise the caller does, when again is true.
func (a *acquisition) askToEnter(ctx context.Context, count int) (ans transport.Answer, again bool, err error) {
	o := a.ownership
	for doubt := false; ; {
		ans, err = a.send(ctx, count, 0)
		o.noteDoubt(ans)
		doubt = doubt || ans.Doubt
		ans.Doubt = doubt
		if err == nil || !o.live() || transport.Classify(err) == transport.Refused || !worthWaiting(ctx, err) || !a.hasTime() {
			return ans, false, err
		}
		if !doubt {
			return ans, true, err
		}
		if stopped := transport.Rest(ctx, o.lock.client.closing, transport.Jitter(transport.LongPause)); stopped != nil {
			return ans, false, transport.StoppedAfter(err, stopped)
		}
		o.turn.Lend()
	}
}
