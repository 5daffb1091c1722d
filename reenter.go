package latchkey

import (
	"context"
	"errors"
)

// reenter raises the count by one. It reports whether it may succeed later.
func (t *ownership) reenter(ctx context.Context, r *request) (h *Hold, again bool, err error) {
	t.mu.Lock()
	count := t.holds.count + 1
	r.lease = min(r.lease, max(t.lease.limit.left(t.client.clock()), MinLease))
	t.mu.Unlock()
	a, again, err := t.askToEnter(ctx, r, count)
	switch {
	case again:
		return nil, true, err
	case hasCode(err, "LATCHKEY_GONE"):
		t.lose(ErrLost, "it was gone when it was entered again")
		return nil, false, errors.Join(ErrNotAcquired, ErrLost)
	case err != nil:
		return nil, false, t.entryFailed(r, a, err)
	}
	g, cause := t.addHold(r, a)
	if cause != nil {
		// The ownership ended while the answer was under way, and must not come to life
		// again: what the server has counted is taken back.
		t.undoLater(0, r.lease)
		return nil, false, notEntered(cause)
	}
	return newHold(g), false, nil
}

// entryFailed sets the server's count back if the re-entry may have been counted.
func (t *ownership) entryFailed(r *request, a answer, err error) error {
	counted := errors.Is(err, ErrNotReplicated)
	known := counted && t.client.undo.atOnce(t.setRight)
	if a.doubt || counted && !known {
		t.undoLater(0, r.lease)
	}
	if !known && (a.doubt || counted) {
		return errors.Join(err, ErrUnknownOutcome)
	}
	return err
}

// askToEnter asks the server to count one hold more. If the server does not do it now, the
// question is to be asked again, for as long as the call may take and the hold stands;
// after an attempt whose outcome is unknown that is done here, before anything else is sent
// but a renewal.
func (t *ownership) askToEnter(ctx context.Context, r *request, count int) (a answer, again bool, err error) {
	for doubt := false; ; {
		a, err = t.sendAcquire(ctx, r, count, 0)
		t.noteDoubt(a)
		doubt = doubt || a.doubt
		a.doubt = doubt
		if err == nil || !t.live() || classify(err) == refused || !worthWaiting(ctx, err) || !t.client.hasTime(r) {
			return a, false, err
		}
		if !doubt {
			return a, true, err
		}
		if stopped := rest(ctx, t.client.closing, jitter(longPause)); stopped != nil {
			return a, false, stoppedAfter(err, stopped)
		}
		t.turn.lend()
	}
}
