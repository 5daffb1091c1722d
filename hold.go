package latchkey

import (
	"context"
	"log/slog"
	"runtime"
	"time"
)

// Hold is the right to release a lock, and the way to learn that it is lost. Every
// acquisition returns a Hold of its own, re-entries included. Its methods may be called from any goroutine. A nil Hold behaves as released.
type Hold struct{ backend holdBackend }

// newHold makes the handle of a hold. It is a part of the hold, unless the client is to report one that
// nobody released when the garbage collector finds it ([Options].ReportDropped). Such a hold is
// never released: the program may still be inside.
func newHold(of holdBackend) *Hold {
	h := of.handle()
	if h == nil {
		h = &Hold{}
		runtime.SetFinalizer(h, (*Hold).abandoned)
	}
	h.backend = of
	return h
}

// abandoned runs in the goroutine of the garbage collector, and only looks.
func (h *Hold) abandoned() {
	client := h.backend.unreleased()
	if client == nil || !client.options.ReportDropped {
		return
	}
	var attrs []slog.Attr
	if owner := h.backend.owner(); !owner.IsZero() {
		attrs = append(attrs, slog.String("owner", owner.String()))
	}
	client.reporter.log(noticeUnreleased, h.backend.lockName(), attrs...)
}

// inner is what h is a handle of.
func (h *Hold) inner() holdBackend {
	if h == nil || h.backend == nil {
		return noHold{}
	}
	return h.backend
}

// Name returns the name of the lock as the program gave it.
func (h *Hold) Name() string { return h.inner().lockName() }

// Owner returns the owner as it is in Redis. Another process that acquires
// the lock [By] this owner enters the same hold. A hold whose owner was asked for is therefore
// not passed on inside this client ([Options].Turn): its Unlock goes to the server. Nor do others read along any more,
// and those who do already have the same owner. A [MultiLock] and a [RedLock] have no owner of their own. If the
// hold was passed on before you asked, Owner returns an owner that is not in Redis.
func (h *Hold) Owner() Owner { return h.inner().owner() }

// Token returns the fencing token of a [FencedLock]: a number that is larger than
// that of every earlier holder, the same for the whole hold and its re-entries. A guest, who
// entered [By] the owner of a hold for which other goroutines of its client waited, may have a
// larger one; make the owner before the hold, with [Client.NewOwner], and it has the same. A
// store that remembers the largest token it has seen, and refuses smaller ones,
// is safe from a holder that does not know yet that it lost the lock. Other locks
// have no tokens and return 0; for the members of a [MultiLock] see [Hold.Member].
func (h *Hold) Token() int64 { return h.inner().token() }

// Count returns how often this client holds the lock for this owner: 1 for an
// outermost hold, more with re-entries, 0 when it is over.
func (h *Hold) Count() int { return h.inner().count() }

// ValidFor returns for how long the hold can be relied on if the server never
// answers again, 0 when it is over. It does not ask the server. Check it right before a
// step that must not happen without the lock; only a fencing token stops a write
// that stalls after that.
//
// After a wait it may be less than the lease. A release gives a lock to another client for
// Options.StaleWaiterTimeout only, of which Lock leaves half at least; the client raises it to
// the lease in the background. A hold that was passed on inside the client has what is left of
// the lease, more than half. Extend gives more at once.
func (h *Hold) ValidFor() time.Duration { return h.inner().validFor() }

// Err returns nil while the lock is held, and afterwards why it is not: ErrNotHeld
// after Unlock, or the cause of the loss (ErrLost, ErrMaxHold, ErrClosed). It is
// right at the moment of the call, even if the machine has just woken up and no
// timer has fired yet.
func (h *Hold) Err() error { return h.inner().err() }

// Lost returns a channel that closes when the hold is lost, at the latest when the
// lease could run out on the server, even if the server is silent. It
// does not close on Unlock.
func (h *Hold) Lost() <-chan struct{} {
	life, mu := h.inner().life()
	return life.whenLost(mu)
}

// LogValue returns the hold as a group of attributes, for package log/slog: its name, its
// token if it has one, and its count and for how long it is valid, or, if it is over, why.
// It does not ask the server. The owner is not among them, because a hold whose owner was asked for is treated in another way: see [Hold.Owner].
func (h *Hold) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("name", h.Name())}
	if token := h.Token(); token != 0 {
		attrs = append(attrs, slog.Int64("token", token))
	}
	if err := h.Err(); err != nil {
		return slog.GroupValue(append(attrs, slog.Any("err", err))...)
	}
	return slog.GroupValue(append(attrs, slog.Int("count", h.Count()), slog.Duration("valid_for", h.ValidFor()))...)
}

// Unlock gives the hold back; the last one of its owner frees the lock, or gives it to a
// waiter, or leaves it taken for what is left of [AtLeast]. It works even if ctx has ended: only the values of ctx are used, and the
// time is bounded by Options.RetryBudget instead.
//
// If goroutines of this client wait for the lock, Unlock may pass it to the first of them in
// memory ([Options].Turn). It then sends nothing, and does not notice that the key was removed
// from outside since the last renewal (a forced unlock, an eviction, a failover). The same
// holds for a reader that others of this client read along with: the last of them releases the lock.
//
// nil means that the hold lasted until this call and is over now. ErrNotHeld means
// that it was over before: released already, or lost (then ErrLost matches too).
// After any other error the hold is not renewed any more, the release is repeated in
// the background until its lease has ended, and Unlock may be called again to wait for
// it. ErrUnavailable and ErrUnknownOutcome mean that the server could not be asked or did
// not answer; a *rueidis.RedisError means that it refused. A
// connection that has gone silent without breaking may cost a few seconds on top of the
// budget until that is noticed.
func (h *Hold) Unlock(ctx context.Context) error {
	of := h.inner()
	err := of.unlock(ctx)
	if h != nil && err == nil && of.handle() == nil {
		runtime.SetFinalizer(h, nil)
	}
	runtime.KeepAlive(h) // until then it does not count as dropped
	return err
}
