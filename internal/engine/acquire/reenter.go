package acquire

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/identity"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/owners"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/transport"
	"github.com/latchkey-go/latchkey/internal/transport/outcome"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// reenter re-enters the hold that the call is for, or makes the first read of an owner that writes.
// If it returns neither a hold nor an error, the caller begins a hold: for a.Ownership, whose
// SendMu the call then has locked, or for a fresh owner if that is nil. If an ownership ends
// meanwhile, reenter resolves it again.
func (a *Acquisition) reenter(ctx context.Context) (*ownership.Hold, error) {
	for {
		a.Ownership, a.Under = nil, nil // what was to be re-entered before may be over
		if ctx.Err() != nil {
			return nil, fault.ContextError(ctx)
		}
		o, err := a.resolve(ctx)
		if o == nil {
			return nil, err
		}
		if err == nil && a.Note != "" && o.IsGuest {
			err = fault.Invalid("Note does not apply to a guest: the owner belongs to another client")
		}
		if err != nil {
			o.ForgetUnused()
			return nil, err
		}
		if err := a.lockSendMu(ctx, o); err != nil {
			o.ForgetUnused()
			return nil, err
		}
		h, again, err := a.enter(ctx, o)
		if !again {
			return h, err
		}
		if err == nil {
			continue
		}
		if stopped := retry.Rest(ctx, a.Lock.Client.Closing, retry.Jitter(retry.LongPause)); stopped != nil {
			return nil, outcome.StoppedAfter(err, stopped)
		}
	}
}

// resolve finds the ownership that the call is for: that of an explicit owner, of the hold on the
// context, or of the owner on the context. Without any of them it returns nil: the call needs a
// fresh owner. Each permit has its own.
func (a *Acquisition) resolve(ctx context.Context) (*ownership.Ownership, error) {
	p, owner := a.Lock, a.As
	switch {
	case p.Spec.Resolve != nil:
		return p.Spec.Resolve(ctx, a)
	case p.Spec.Permit:
		return nil, nil //nolint:nilnil // no owner is not an error
	}
	if owner.IsZero() {
		if h := HoldFrom(ctx, &p.Lock, ""); h != nil {
			a.Under = &h.Item
			return h.Ownership, p.mayEnter(h.Ownership)
		}
	}
	if owner.IsZero() && p.Spec.Reentrant {
		var err error
		if owner, err = identity.OwnerFrom(ctx); err != nil {
			return nil, err
		}
	}
	if owner.IsZero() {
		return nil, nil //nolint:nilnil // no owner is not an error
	}
	o := owners.Of(p.Client).Find(&p.Lock, owner)
	return o, p.mayEnter(o)
}

// mayEnter refuses an acquisition that could only wait for itself, or that would mix two kinds of
// lock.
func (p *Lock) mayEnter(o *ownership.Ownership) error {
	switch {
	case o.Spec.Family != p.Spec.Family:
		return fault.WrongKind(keyspace.Noun(p.Spec.Stored), keyspace.Noun(o.Spec.Stored), nil)
	case !p.Spec.Reentrant && o.Live():
		return fault.Invalid("%s is not re-entrant, and the context carries a hold of it", keyspace.Noun(p.Spec.Family))
	}
	return nil
}

// lockSendMu waits for another call of the same owner. A call that uses the lock, or reads for an
// owner that writes, waits only for the server; a call that acquires it waits for whatever delays
// the acquisition. A try waits no longer than its own request may take.
func (a *Acquisition) lockSendMu(ctx context.Context, o *ownership.Ownership) error {
	if o.SendMu.TryLock() {
		return nil
	}
	if !a.Waits && !o.Live() && !o.IsNested() {
		return fault.ErrNotAcquired
	}
	waits, cancel := ctx, context.CancelFunc(func() {})
	if !a.Waits {
		waits, cancel = context.WithTimeout(ctx, o.Client.Sender.Patience-o.Client.Clock().Since(a.Began))
	}
	defer cancel()
	switch {
	case o.SendMu.Lock(waits) == nil:
		return nil
	case ctx.Err() == nil:
		return outcome.Unavailable(outcome.ErrSilent)
	}
	err := fault.ContextError(ctx)
	q := o.Client.Lines.Use(o.LineKey())
	defer q.Done()
	if o.Live() || o.IsNested() {
		return outcome.Unavailable(err)
	}
	return WithOwnHold(a.Lock.Client, o.Names.Key, q.In(o.Lock.Spec.Line).WaitError(ctx, err, nil))
}

// unlockSendMu unlocks SendMu of an ownership that others may know.
func (a *Acquisition) unlockSendMu() {
	if a.hasSendMu {
		a.hasSendMu = false
		a.Ownership.SendMu.Unlock()
	}
}

// enter acts on the phase of the ownership. The caller has locked SendMu, and keeps it only if the
// ownership is to begin. again tells the caller to resolve the ownership again: at once if err is
// nil, else after a pause, in which other calls, above all the renewal, get SendMu.
func (a *Acquisition) enter(ctx context.Context, o *ownership.Ownership) (h *ownership.Hold, again bool, err error) {
	a.Ownership = o
	phase := o.CurrentPhase()
	if phase == ownership.Acquiring {
		a.hasSendMu = true
		if o.IsNested() {
			return a.readFirst(ctx)
		}
		return nil, false, nil
	}
	defer o.SendMu.Unlock()
	if phase == ownership.Releasing && o.IsNested() { // the next read has the same name in Redis
		err = o.CompleteRelease(ctx, o.Client.Closing)
		return nil, err == nil || line.WorthWaiting(ctx, err) && a.hasTime(), err
	}
	wanted := a.Request
	if h, again, err = a.addOne(ctx); again {
		a.Request = wanted // it may begin a hold of its own, with other limits
	}
	return h, again, err
}

// readFirst makes the first read of an owner that writes, which need not wait. again is true if the
// write hold was released just before.
func (a *Acquisition) readFirst(ctx context.Context) (h *ownership.Hold, again bool, err error) {
	defer a.unlockSendMu()
	_, err = a.Attempt(ctx, 0)
	gone := outcome.HasCode(err, "LATCHKEY_GONE")
	h, err = a.Conclude(err)
	if gone && a.Ownership.Sibling.IsReleased() && !errors.Is(err, fault.ErrUnknownOutcome) {
		return nil, true, nil
	}
	return h, false, err
}

// addOne raises the count of the ownership by one. again is as for enter.
func (a *Acquisition) addOne(ctx context.Context) (h *ownership.Hold, again bool, err error) {
	o := a.Ownership
	count := o.Enter(&a.Request, a.Under)
	if count == 0 {
		return nil, true, nil
	}
	ans, again, err := a.sendReentry(ctx, count)
	switch {
	case again:
		o.DropEntry()
		return nil, true, err
	case outcome.HasCode(err, "LATCHKEY_GONE"):
		o.Lose(fault.ErrLost, "the key was gone when the hold was re-entered")
		return nil, false, errors.Join(fault.ErrNotAcquired, fault.ErrLost)
	case err != nil:
		return nil, false, a.entryFailed(ans, err)
	}
	s, cause := o.AddHold(&a.Request, a.Under, ans)
	if cause == nil {
		return s, false, nil
	}
	// It ended while the answer was in flight, and must not become live again: the re-entry that
	// the server counted is undone.
	o.DropEntry()
	o.UndoLater(0, a.Lease)
	if errors.Is(cause, fault.ErrNotHeld) {
		return nil, true, nil
	}
	return nil, false, NotEntered(cause)
}

// entryFailed resets the server's count if the re-entry may have been counted.
func (a *Acquisition) entryFailed(ans transport.Answer, err error) error {
	o := a.Ownership
	o.DropEntry()
	counted := errors.Is(err, fault.ErrNotReplicated)
	known := counted && o.Client.Undo.Now(o.UndoLocked)
	if ans.Doubt || counted && !known {
		o.UndoLater(0, a.Lease)
	}
	if !known && (ans.Doubt || counted) {
		return errors.Join(err, fault.ErrUnknownOutcome)
	}
	return err
}

// sendReentry sends the new count to the server. If the server cannot count it now, the request is
// repeated for as long as the call has time and the hold lasts. After an attempt whose outcome is
// unknown, sendReentry itself repeats it: in between, only a renewal may be sent. Otherwise, or if
// all other holds are being released by now, again is true, and the caller repeats it.
func (a *Acquisition) sendReentry(ctx context.Context, count int) (ans transport.Answer, again bool, err error) {
	o := a.Ownership
	for doubt := false; ; {
		ans, err = a.send(ctx, count, 0)
		o.AcquisitionAnswered(ans)
		doubt = doubt || ans.Doubt
		ans.Doubt = doubt
		if err == nil || !o.Live() ||
			outcome.Classify(err) == outcome.Refused || !line.WorthWaiting(ctx, err) || !a.hasTime() {
			return ans, false, err
		}
		if !doubt || o.Count() == 1 {
			return ans, true, err
		}
		if stopped := retry.Rest(ctx, o.Client.Closing, retry.Jitter(retry.LongPause)); stopped != nil {
			return ans, false, outcome.StoppedAfter(err, stopped)
		}
		o.SendMu.Lend()
	}
}

// NotEntered is the error of a re-entry into a hold that ended with cause.
func NotEntered(cause error) error {
	if errors.Is(cause, fault.ErrClosed) {
		return fault.ErrClosed
	}
	return errors.Join(fault.ErrNotAcquired, cause)
}
