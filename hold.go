package latchkey

import (
	"context"
	"log/slog"
	"runtime"
	"time"
)

// Hold is the right to release a lock, and the way to learn that it is lost. It
// is what every acquisition returns, one for each, re-entries included. Its
// methods may be called from any goroutine. A nil Hold behaves as released.
type Hold struct {
	ownership *ownership
	state     *holdState
	composite *compositeHold // instead of both, of a lock that is several
}

// newHold makes the handle, and has a hold that nobody released reported when the
// garbage collector finds it. It is never released then: the program may still be
// inside.
func newHold(t *ownership, g *holdState) *Hold {
	h := &Hold{ownership: t, state: g}
	runtime.SetFinalizer(h, (*Hold).abandoned)
	return h
}

// abandoned runs in the goroutine of the garbage collector, and only looks.
func (h *Hold) abandoned() {
	if h.composite != nil {
		h.composite.dropped()
		return
	}
	h.ownership.mu.Lock()
	over := h.state.over() || h.state.leaving
	// A permit that ends by itself may be left to whoever has its id.
	left := h.ownership.lock.spec.shared && !h.state.renew
	h.ownership.mu.Unlock()
	if !over && !left {
		h.ownership.client.reporter.log(noticeUnreleased, h.ownership.lock.name, slog.String("owner", h.ownership.wire))
	}
}

// Name returns the name of the lock as the program gave it.
func (h *Hold) Name() string {
	if h == nil {
		return ""
	}
	if h.composite != nil {
		return h.composite.name
	}
	return h.ownership.lock.name
}

// Owner returns the owner as it stands in Redis. Another process that acquires
// the lock [By] this owner enters the same hold. A [MultiLock] and a [RedLock] have no
// owner of their own.
func (h *Hold) Owner() Owner {
	if h == nil || h.composite != nil {
		return Owner{}
	}
	return h.ownership.owner
}

// Token returns the fencing token of a [FencedLock]: a number that is larger than
// that of every earlier holder, the same for the whole hold and its re-entries. A
// store that remembers the largest token it has seen, and refuses smaller ones,
// is safe from a holder that does not know yet that it lost the lock. Other locks
// have no tokens and return 0; for the members of a [MultiLock] see [Hold.Member].
func (h *Hold) Token() int64 {
	if h == nil || h.composite != nil {
		return 0
	}
	return h.ownership.token
}

// Count returns how often this client holds the lock for this owner: 1 for an
// outermost hold, more with re-entries, 0 when it is over.
func (h *Hold) Count() int {
	switch {
	case h == nil:
		return 0
	case h.composite != nil:
		return h.composite.count()
	}
	h.ownership.mu.Lock()
	defer h.ownership.mu.Unlock()
	return h.ownership.count
}

// ValidFor returns for how long the hold can be relied on if the server is never
// heard of again, 0 when it is over. It asks nobody. Look at it right before a
// step that must not happen without the lock; what stalls after the look is for
// a fencing token to stop.
func (h *Hold) ValidFor() time.Duration {
	switch {
	case h.Err() != nil:
		return 0
	case h.composite != nil:
		return h.composite.validFor()
	}
	h.ownership.mu.Lock()
	defer h.ownership.mu.Unlock()
	return max(min(h.ownership.valid(), h.state.left(h.ownership.client.clock())), 0)
}

// Err returns nil while the lock is held, and afterwards why it is not: ErrNotHeld
// after Unlock, or the cause of the loss (ErrLost, ErrMaxHold, ErrClosed). It is
// judged at the moment of the call, also when the machine has just woken up and
// no timer has fired yet.
func (h *Hold) Err() error {
	switch {
	case h == nil:
		return ErrNotHeld
	case h.composite != nil:
		return h.composite.err()
	}
	t := h.ownership
	t.mu.Lock()
	expired := t.phase == held && t.valid() <= 0
	limited := h.state.left(t.client.clock()) <= 0
	t.mu.Unlock()
	if expired {
		t.endIfDue()
	}
	if limited {
		t.limitReached(h.state)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.errOf(h.state)
}

// errOf is why a hold is not held, or nil. t.mu is held.
func (t *ownership) errOf(g *holdState) error {
	if err := g.overBecause(); err != nil || t.phase == held {
		return err
	}
	return ErrNotHeld
}

// Lost returns a channel that closes when the hold is lost, at the latest when the
// lease could run out on the server, whether anything is heard from it or not. It
// does not close on Unlock.
func (h *Hold) Lost() <-chan struct{} {
	if h == nil {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	if h.composite != nil {
		return h.composite.state.whenLost(&h.composite.mu)
	}
	return h.state.whenLost(&h.ownership.mu)
}

// find returns the hold itself, or the one of its members, if it is a live one of a lock,
// or of one side of it, or nil.
func (h *Hold) find(p *primitive, side Kind) *Hold {
	if h.composite != nil {
		return h.composite.find(p, side)
	}
	t := h.ownership
	if t.client == p.client && t.lock.key == p.key && t.lock.spec.side == side && h.Err() == nil {
		return h
	}
	return nil
}

// Unlock gives the hold back; the last one of its owner frees the lock and wakes a
// waiter. It works although ctx has ended: only the values of ctx are used, and the
// time is bounded by Options.RetryBudget instead.
//
// nil means that the hold lasted until this call and is over now. ErrNotHeld means
// that it was over before: released already, or lost (then ErrLost matches too).
// After any other error the hold is not renewed any more, the release is repeated in
// the background until its lease has ended, and Unlock may be called again to wait for
// it. ErrUnavailable and ErrUnknownOutcome mean that the server could not be asked or did
// not answer; a *rueidis.RedisError means that it refused. A connection that has gone silent without breaking may cost a few seconds on
// top of the budget until that is noticed.
func (h *Hold) Unlock(ctx context.Context) error {
	switch {
	case h == nil:
		return ErrNotHeld
	case h.composite != nil:
		err := h.composite.unlock(ctx)
		runtime.KeepAlive(h) // until then it is no hold that was dropped
		return err
	}
	err := h.ownership.releaseHold(ctx, h.state)
	if err == nil {
		runtime.SetFinalizer(h, nil)
	}
	return err
}
