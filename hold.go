package latchkey

import (
	"context"
	"log/slog"
	"runtime"
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/report"
)

// Hold is the right to release a lock, and the way to learn that it is lost. Every acquisition
// returns a Hold of its own, re-entries included. Any goroutine may call its methods. A nil Hold
// behaves like a released one.
type Hold struct{ backend holdBackend }

// newHold makes the handle of a hold. The client reports a handle that the garbage collector finds while
// the hold lasts, and never releases such a hold: the program may still be in the critical section.
// A finalizer for each hold would cost a tenth of an uncontended Lock and Unlock. So a hold keeps its
// handle until its first renewal (see watchHandle): most are over by then.
func newHold(of holdBackend) *Hold {
	h := &Hold{of}
	if !of.keepHandle(h) {
		runtime.SetFinalizer(h, (*Hold).abandoned)
	}
	return h
}

// abandoned runs in the goroutine of the garbage collector, so it only reports.
func (h *Hold) abandoned() {
	client := h.backend.unreleased()
	if client == nil {
		return
	}
	var attrs []slog.Attr
	if owner := h.backend.owner(); !owner.IsZero() {
		attrs = append(attrs, slog.String("owner", owner.String()))
	}
	client.reporter.Log(report.NoticeUnreleased, h.backend.lockName(), attrs...)
}

// inner returns the backend of h.
func (h *Hold) inner() holdBackend {
	if h == nil || h.backend == nil {
		return noHold{}
	}
	return h.backend
}

// Name returns the name of the lock as the program gave it.
func (h *Hold) Name() string { return h.inner().lockName() }

// Owner returns the owner as it is in Redis. Another process that acquires the lock [By] this owner
// enters the same hold. So once you have called Owner, the client does not pass the hold on in
// memory ([Options].Turn): its Unlock goes to the server. No further reader of this client joins
// the hold, and those that share it already have the same owner. If the hold was passed on before
// you called Owner, Owner returns one that is not in Redis. A [MultiLock] and a [RedLock] have no
// owner of their own.
func (h *Hold) Owner() Owner { return Owner(h.inner().owner()) }

// Token returns the fencing token of a [FencedLock]: a number that is larger than that of every
// earlier holder, and the same for the whole hold and its re-entries. A store that remembers the
// largest token it has seen, and refuses smaller ones, is safe from a holder that does not know yet
// that it lost the lock. Other locks have no tokens and return 0; for the members of a [MultiLock]
// see [Hold.Member].
func (h *Hold) Token() int64 { return h.inner().token() }

// Count returns how often this client holds the lock for this owner: 1 for an outermost hold, more
// with re-entries, 0 when it is over.
func (h *Hold) Count() int { return h.inner().count() }

// ValidFor returns how long you can rely on the hold if the server never answers again, 0 when it
// is over. It sends nothing to the server. Check it right before a step that must not happen
// without the lock; only a fencing token stops a write that stalls after that.
//
// After a wait it may be less than the lease. A release gives a lock to another client for
// Options.StaleWaiterTimeout only, and Lock returns with at least half of that left; the client
// raises it to the lease in the background. A hold that was passed on inside the client has the
// rest of the lease, more than half. Extend gives more at once.
func (h *Hold) ValidFor() time.Duration { return h.inner().validFor() }

// Err returns nil while the lock is held, and afterwards why it is not: ErrNotHeld after Unlock, or
// the cause of the loss (ErrLost, ErrMaxHold, ErrClosed). It is right at the time of the call, even
// if the machine has just woken up and no timer has fired yet.
func (h *Hold) Err() error { return h.inner().err() }

// Lost returns a channel that closes when the hold is lost, at the latest when the lease could run
// out on the server, even if the server is silent. It does not close on Unlock.
func (h *Hold) Lost() <-chan struct{} {
	life, mu := h.inner().life()
	return life.whenLost(mu)
}

// LogValue returns the hold as a group of attributes, for package log/slog: its name, its token if
// it has one, and its count and how long it is valid, or, if it is over, the reason. It sends
// nothing to the server. It leaves out the owner, because calling Owner changes how the client
// treats the hold: see [Hold.Owner].
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

// Unlock releases the hold. The last hold of an owner frees the lock, gives it to a waiter, or
// leaves it taken for the rest of [AtLeast]. Unlock works even if ctx has ended: it uses only the
// values of ctx, and Options.RetryBudget bounds its time instead.
//
// If goroutines of this client wait for the lock, Unlock may pass it to the first of them in memory
// ([Options].Turn). It then sends nothing, and does not notice that the key was removed from
// outside since the last renewal (a forced unlock, an eviction, a failover). The same is true of a
// hold that several readers of this client share: the last of them releases the lock.
//
// A nil error means that the hold lasted until this call and is over now. ErrNotHeld means that it
// was over before: released already, or lost (then ErrLost matches too). After any other error the
// client no longer renews the hold, and repeats the release in the background until the lease has
// ended. You may call Unlock again to wait for it. ErrUnavailable and ErrUnknownOutcome mean that
// the server could not be reached or did not answer; a *rueidis.RedisError means that it refused.
// If a connection goes silent without breaking, Unlock may take a few seconds longer than the
// budget.
func (h *Hold) Unlock(ctx context.Context) error {
	of := h.inner()
	err := of.unlock(ctx)
	if h != nil && err == nil && of.isWatched() {
		runtime.SetFinalizer(h, nil)
	}
	runtime.KeepAlive(h) // until here it does not count as dropped
	return err
}
