package latchkey

import (
	"context"
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/primitive/rw"
)

// Hold is the right to release a lock, and the way to learn that it is lost. Every acquisition
// returns a Hold of its own, re-entries included. Any goroutine may call its methods. A nil Hold
// behaves like a released one.
type Hold hold.Handle

// handle returns the hold as the inside of the library sees it.
func (h *Hold) handle() *hold.Handle { return (*hold.Handle)(h) }

// asHold returns what a method of a lock returns for what the inside returned.
func asHold(h *hold.Handle, err error) (*Hold, error) { return (*Hold)(h), err }

// Name returns the name of the lock as the program gave it.
func (h *Hold) Name() string { return h.handle().Name() }

// Owner returns the owner as it is in Redis. Another process that acquires the lock [As] this owner
// enters the same hold. So once you have called Owner, the client does not pass the hold on in
// memory ([Tuning].Turn): its Unlock goes to the server. No further reader of this client joins
// the hold, and those that share it already have the same owner. If the hold was passed on before
// you called Owner, Owner returns one that is not in Redis. A [MultiLock] and a [RedLock] have no
// owner of their own.
func (h *Hold) Owner() Owner { return Owner(h.handle().Owner()) }

// Token returns the fencing token of a [FencedLock]: a number that is larger than that of every
// earlier holder, and the same for the whole hold and its re-entries. A store that remembers the
// largest token it has seen, and refuses smaller ones, is safe from a holder that does not know yet
// that it lost the lock. Other locks have no tokens and return 0; for the members of a [MultiLock]
// see [Hold.Member].
func (h *Hold) Token() int64 { return h.handle().Token() }

// ValidFor returns how long you can rely on the hold if the server never answers again, 0 when it
// is over. It sends nothing to the server. Check it right before a step that must not happen
// without the lock; only a fencing token stops a write that stalls after that.
//
// After a wait it may be less than the lease. A release gives a lock to another client for
// Tuning.StaleWaiterTimeout only, and Lock returns with at least half of that left; the client
// raises it to the lease in the background. A hold that was passed on inside the client has the
// rest of the lease, more than half. Extend gives more at once.
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
// the context has ended when Context returns. Context sends nothing to the server.
//
// An acquisition of the same lock under the context is a re-entry; other locks are not affected.
// The HoldFrom of the lock ([Lock.HoldFrom]) finds the hold in the context, and in contexts that are
// derived from it.
//
// After the machine has slept, the context may end up to a fifth of a second late; Err and ValidFor
// are right at once.
//
// A hold keeps some 700 bytes for each parent, until the parent or the hold ends. A parent counts
// once, however often you use it (unless it is not comparable). All parents that never end, such as
// [context.Background], count as one; so do all contexts that another hold returns for one parent.
func (h *Hold) Context(parent context.Context) context.Context { return h.handle().Context(parent) }

// LogValue returns the hold as a group of attributes, for package log/slog: its name, its token if it has one,
// how often its client holds the lock for its owner ("count"), and how long it is valid, or, if it is over, the
// reason. It sends nothing to the server. It leaves out the owner, because calling Owner changes how the client
// treats the hold: see [Hold.Owner].
func (h *Hold) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("name", h.Name())}
	if token := h.Token(); token != 0 {
		attrs = append(attrs, slog.Int64("token", token))
	}
	if err := h.Err(); err != nil {
		return slog.GroupValue(append(attrs, slog.Any("err", err))...)
	}
	return slog.GroupValue(append(attrs, slog.Int("count", h.handle().Count()), slog.Duration("valid_for", h.ValidFor()))...)
}

// Members returns the holds of the members of a [MultiLock] or [RedLock], and nil for other holds.
// Those of a MultiLock are in the order of their keys, each lock once, and include the members of a
// MultiLock inside it. Those of a RedLock are in the order of NewRedLock. An element is nil if that
// member has not been acquired. A member that was lost stays in the list, with its [Hold.Err],
// until it is acquired again. Members sends nothing to the servers.
//
// Use the members to read: Name, [Hold.Token], Owner, Err, ValidFor. The whole renews and releases
// them. A member that you unlock counts as lost.
func (h *Hold) Members() []*Hold {
	var holds []*Hold
	for _, m := range h.handle().Members() {
		holds = append(holds, (*Hold)(m))
	}
	return holds
}

// Member returns the hold of the member with that name, or nil if there is none; a nil Hold behaves
// like a released one. A member may itself be a group, such as a [RedLock] in a [MultiLock]: Member
// searches its members as well. If several members have the name, as those of a RedLock do, Member
// returns the first that is still held.
//
//	token := hold.Member("account:1").Token() // of a FencedLock in a MultiLock
func (h *Hold) Member(name string) *Hold { return (*Hold)(h.handle().Member(name)) }

// Extend makes the lease last at least d from now, once; it never shortens the lease. If the hold
// is renewed, renewal goes on. Extend does not wait. While the server is in trouble, it retries for
// Options.RetryBudget.
//
// The error matches ErrNotHeld if the hold is over (also ErrLost if it was lost), ErrMaxHold if d
// would pass the limit of the hold, ErrInvalid for a bad d, ErrClosed, or ErrNotReplicated. It
// matches ErrUnavailable if the server could not be reached, and ErrUnknownOutcome as well if the
// request was sent and got no answer. It is a *rueidis.RedisError if the server refuses. After an
// error the lease is unchanged, except that it may be d after ErrUnknownOutcome and
// ErrNotReplicated.
func (h *Hold) Extend(ctx context.Context, d time.Duration) error { return h.handle().Extend(ctx, d) }

// Downgrade turns a write hold into a read hold, in one step: no other writer acquires the lock in between. The
// write hold is over, as after Unlock. The new read hold is renewed, within what is left of MaxHold, and
// waiting readers are admitted. The write hold must be the only one of its write side: if it has been
// re-entered, Downgrade returns an ErrInvalid. The same holds for a hold of any other lock, and for a hold with
// [AtLeast] before that time is over.
//
// Like Unlock, Downgrade works even if ctx has ended: it uses only the values of ctx, and Options.RetryBudget
// bounds its time instead.
//
// If Downgrade returns an error, rely on neither hold. It matches ErrNotHeld if the write hold was already over,
// and after an ErrInvalid the write hold goes on; otherwise the lock is released in the background, as after an
// Unlock that failed.
func (h *Hold) Downgrade(ctx context.Context) (*Hold, error) {
	return asHold(rw.Downgrade(ctx, h.handle()))
}

// Unlock releases the hold. The last hold of an owner frees the lock, gives it to a waiter, or
// leaves it taken for the rest of [AtLeast]. Unlock works even if ctx has ended: it uses only the
// values of ctx, and Options.RetryBudget bounds its time instead.
//
// If goroutines of this client wait for the lock, Unlock may pass it to the first of them in memory
// ([Tuning].Turn). It then sends nothing, and does not notice that the key was removed from
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
func (h *Hold) Unlock(ctx context.Context) error { return h.handle().Unlock(ctx) }
