package latchkey

import (
	"context"
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/primitive/rw"
)

// Hold is the right to release a lock, and the way to learn that it is lost. Every acquisition
// returns a Hold of its own, re-entries included. Any goroutine may call its methods. A nil Hold
// behaves like a released one. Only Extend, Downgrade and Unlock send anything to the server.
type Hold hold.Handle

// handle returns the hold as the inside of the library sees it.
func (h *Hold) handle() *hold.Handle { return (*hold.Handle)(h) }

// asHold returns what a method of a lock returns for what the inside returned.
func asHold(h *hold.Handle, err error) (*Hold, error) { return (*Hold)(h), err }

// Name returns the name of the lock as the program gave it.
func (h *Hold) Name() string { return h.handle().Name() }

// Owner returns the owner as it is in Redis, to print and to compare. Holds that the client passes
// on in memory ([Tuning].Turn), and readers that share a hold, have the same owner. So do not join
// a hold with it ([As], [WithOwner]): for that there is [Hold.Share]. A [MultiLock] has no owner of
// its own.
func (h *Hold) Owner() Owner { return Owner(h.handle().Owner()) }

// Share returns the owner, for others to join the hold: an acquisition [As] or [WithOwner] this
// owner, in this or in another process ([ParseOwner]), enters the same hold. From then on the
// client does not pass the hold on in memory ([Tuning].Turn), and no further reader of this client
// joins it. If the hold is over, and was passed on before, Share returns an owner that is not in
// Redis.
func (h *Hold) Share() Owner { return Owner(h.handle().Share()) }

// Token returns the fencing token of a hold of [Client.NewFencedLock] or [Fenced]: larger than that
// of every earlier holder, and the same for the whole hold and its re-entries. A store that refuses
// a token smaller than the largest it has seen is safe from a holder that does not know yet that it
// lost the lock. Other locks return 0; for those of a [MultiLock] see [Hold.Member].
func (h *Hold) Token() int64 { return h.handle().Token() }

// ValidFor returns how long you can rely on the hold if the server never answers again, 0 when it
// is over. Check it right before a step that must not happen without the lock; only a fencing token
// stops a write that stalls after that.
//
// After a wait it may be less than the lease: at least half of Tuning.StaleWaiterTimeout if another
// client released the lock, and more than half of the lease if this one passed it on. Extend gives
// more at once.
func (h *Hold) ValidFor() time.Duration { return h.handle().ValidFor() }

// Err returns nil while the lock is held, and afterwards why it is not: ErrNotHeld after Unlock, or
// the cause of the loss (ErrLost, ErrMaxHold, ErrClosed). It is right at the time of the call, even
// if the machine has just woken up and no timer has fired yet.
func (h *Hold) Err() error { return h.handle().Err() }

// Lost returns a channel that closes when the hold is lost, at the latest when the lease could run
// out on the server, even if the server is silent. It does not close on Unlock.
func (h *Hold) Lost() <-chan struct{} { return h.handle().Lost() }

// Context returns a context for the work under the lock. It ends with parent, when the hold is lost
// ([context.Cause] then matches ErrLost, and also ErrMaxHold if that was the reason), when the
// client is closed (ErrClosed), and when Unlock begins (ErrNotHeld). If the hold is already over,
// it has ended when Context returns. After the machine has slept, it may end up to a fifth of a
// second late.
//
// An acquisition of the same lock under the context is a re-entry, and [Lock.HoldFrom] finds the
// hold in it; other locks are not affected.
//
// A hold keeps some 700 bytes for each parent, until the parent or the hold ends, however often you
// use it (unless it is not comparable). All parents that never end, such as [context.Background],
// count as one.
func (h *Hold) Context(parent context.Context) context.Context { return h.handle().Context(parent) }

// LogValue returns the hold as a group of attributes, for package log/slog: its name, its token if
// it has one, how often its client holds the lock for its owner ("count"), and how long it is
// valid, or, if it is over, the reason.
func (h *Hold) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("name", h.Name())}
	if token := h.Token(); token != 0 {
		attrs = append(attrs, slog.Int64("token", token))
	}
	if err := h.Err(); err != nil {
		return slog.GroupValue(append(attrs, slog.Any("err", fault.OneLine(err)))...)
	}
	return slog.GroupValue(append(attrs, slog.Int("count", h.handle().Count()), slog.Duration("valid_for", h.ValidFor()))...)
}

// Members returns the holds of the members of a [MultiLock], and nil for other holds. All members
// are in the order of their keys, each lock once, including those of a lock of all members inside
// it; a majority is in the order of [NewRedLock]. An element is nil if that member has not been
// acquired. A member that was lost stays in the list until it is acquired again. Use the members to
// read: the whole renews and releases them, and one that you unlock counts as lost.
func (h *Hold) Members() []*Hold {
	var holds []*Hold
	for _, m := range h.handle().Members() {
		holds = append(holds, (*Hold)(m))
	}
	return holds
}

// Member returns the hold of the member with that name, or nil if there is none. It also searches
// the members of members. If several have the name, as those of a majority do, Member returns the
// first that is still held.
//
//	token := hold.Member("account:1").Token() // of a fenced lock in a MultiLock
func (h *Hold) Member(name string) *Hold { return (*Hold)(h.handle().Member(name)) }

// Extend makes the lease last at least d from now, from 1 ms to 10 years, once; it never shortens
// the lease. If the hold is renewed, renewal goes on. While the server is in trouble, Extend
// retries for Options.RetryBudget.
//
// The error matches ErrNotHeld if the hold is over (also ErrLost if it was lost), ErrMaxHold if d
// would pass the limit of the hold, ErrInvalid for a bad d, ErrClosed, ErrNotReplicated,
// ErrUnavailable, with ErrUnknownOutcome if the request was sent and got no answer, or is a
// *rueidis.RedisError. After ErrUnknownOutcome and ErrNotReplicated the lease may be d; otherwise
// it is unchanged.
func (h *Hold) Extend(ctx context.Context, d time.Duration) error { return h.handle().Extend(ctx, d) }

// Downgrade turns a write hold into a read hold, in one step: no other writer acquires the lock in
// between. The write hold is over, as after Unlock, with which it shares the use of ctx. The new
// read hold is renewed, within what is left of MaxHold, and waiting readers are admitted.
//
// Downgrade returns an ErrInvalid, and the hold goes on, if it is one of several of its write side,
// as after a re-entry, if it is of any other lock, or if the time of [AtLeast] is not over. After
// any other error rely on neither hold: ErrNotHeld means that the write hold was already over;
// otherwise the lock is released in the background, as after an Unlock that failed.
func (h *Hold) Downgrade(ctx context.Context) (*Hold, error) {
	return asHold(rw.Downgrade(ctx, h.handle()))
}

// Unlock releases the hold. The last hold of an owner frees the lock, gives it to a waiter, or
// leaves it taken for the rest of [AtLeast]. Unlock works even if ctx has ended: it uses only the
// values of ctx, and Options.RetryBudget bounds its time instead, or a few seconds more if a
// connection goes silent without breaking.
//
// If goroutines of this client wait for the lock, Unlock may pass it to the first of them in memory
// ([Tuning].Turn), and send nothing. It then does not notice that the key was removed from outside
// since the last renewal. The same is true of a hold that several readers of this client share.
//
// A nil error means that the hold lasted until this call and is over now. ErrNotHeld means that it
// was over before: released already, or lost (then ErrLost matches too). After any other error,
// such as ErrUnavailable, ErrUnknownOutcome or a *rueidis.RedisError, the client no longer renews
// the hold, and repeats the release in the background until the lease has ended. You may call
// Unlock again to wait for it.
func (h *Hold) Unlock(ctx context.Context) error { return h.handle().Unlock(ctx) }
