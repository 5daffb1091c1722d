package latchkey

import (
	"context"
	"time"
)

// ReadLock is the side of an [RWLock] that many owners may hold at once.
type ReadLock struct{ *baseLock }

// Lock acquires the lock to read, together with other readers. It waits while an owner other than the caller's
// writes, and while a waiting writer keeps new readers out. It waits until ctx ends or the time of [Wait] is
// over; with neither, it waits without limit. The other options are [Lease], [MaxHold], [By] and [Note].
//
// A waiting writer keeps new readers out for one Options.StaleWaiterTimeout at first, then for longer, up to a
// minute at a time; in between, readers are admitted. A waiting writer that has died keeps them out for one
// StaleWaiterTimeout.
//
// If ctx carries a read or write hold of this lock ([Hold.Context]), or By or [WithOwner] names the owner of
// one, Lock does not wait. It returns a read hold of its own, which needs its own Unlock and may outlive the
// write hold. An owner of another client is an ErrInvalid.
//
// While another goroutine of this client reads, Lock may let the caller read along with it and send nothing:
// see [RWLock].
//
// The client renews the hold until Unlock, unless Lease fixes its lease; each read hold has its own lease.
// Canceling ctx after Lock returns does not affect the hold.
//
// A nil error means that you hold the lock to read. After any other error this call holds nothing, and a hold
// that it tried to re-enter is not affected. While the server cannot be reached, Lock keeps trying. The error
// matches one of
//
//   - ErrNotAcquired: another owner wrote, or waited to write, until ctx ended or the time of Wait was over
//   - ErrUnavailable: the server could not be reached or did not answer by the end of the wait
//   - ErrUnknownOutcome, besides one of these two: a request was sent and not answered, perhaps an
//     earlier one; the client undoes in the background what it may have acquired
//   - ErrNotReplicated: fewer replicas than [Options.Replicas] requires confirmed the acquisition;
//     it was undone
//   - ErrNotAcquired and ErrLost: the hold to be re-entered was lost before this call entered it
//   - ErrClosed: the client is closed, or was closed during the call
//   - ErrWrongKind: the key is another kind of object, or data of an application
//   - ErrInvalid: the name or an option cannot be used; nothing was sent
//   - *rueidis.RedisError: the server refuses for a reason that waiting does not change,
//     such as a missing permission or a lack of memory
//
// No error matches both ErrNotAcquired and ErrUnavailable; the last attempt decides. If ctx ended,
// the error also matches that of ctx. The end of Wait matches no context error. If ctx had ended
// before the call, nothing was sent, and the error matches only that of ctx.
func (l *ReadLock) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return asHold(l.acquire(ctx, "lock", true, usualSettings(options)))
}

// TryLock makes one attempt to acquire the lock to read and does not wait. The options are [Lease], [MaxHold],
// [By] and [Note]. It succeeds alongside other readers, and under a write hold of the caller's own. Like Lock,
// it may let the caller read along with another goroutine of this client.
//
// ErrNotAcquired means that another owner writes, or that a waiting writer keeps new readers out.
// ErrUnavailable means that the server could not be reached: an attempt that meets a server in trouble
// (silent, loading, failing over) is repeated until it is answered, ctx ends, or Options.RetryBudget is spent.
// All other errors, the re-entry of a hold on ctx, and the state left behind are as for Lock.
func (l *ReadLock) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
	return asHold(l.acquire(ctx, "try lock", false, usualSettings(options)))
}

// IsLocked reports whether anybody holds the lock to read on the server, including this client. It is false
// while a writer that does not read holds the lock. The answer may be out of date when it arrives. Don't branch
// on it; acquire the lock.
//
// The errors are those of Inspect.
func (l *ReadLock) IsLocked(ctx context.Context) (bool, error) { return l.isLocked(ctx, false) }

// ForceUnlock ends all read holds unless somebody writes, wakes waiters, and reports whether it ended any.
// While somebody writes, it does nothing and reports false.
//
// ForceUnlock does not wait for the former holders. Those of this library learn of it at their next renewal, at
// most a third of their lease later, and their holds end with ErrLost. Until then they keep working, at the
// same time as the next holder. A hold that begins after ForceUnlock has looked is not touched.
//
// The errors are those of Inspect, and ErrUnknownOutcome: a removal was sent and not answered. It may or may
// not have happened, and you may repeat it.
func (l *ReadLock) ForceUnlock(ctx context.Context) (bool, error) {
	return l.baseLock.ForceUnlock(ctx)
}

// RemainingLease returns how long the lock as a whole stays held on the server, by readers or a writer, if
// nobody renews it: 0 if it is free, [NoExpiry] if its key has lost its expiry, which only a foreign command
// can cause. Live holders renew their leases, so the lock may stay held for longer.
//
// The errors are those of Inspect.
func (l *ReadLock) RemainingLease(ctx context.Context) (time.Duration, error) {
	return l.baseLock.RemainingLease(ctx)
}

// Inspect returns the readers and writers on the server: both sides of the lock, and for each [Holder] which
// side it holds. Goroutines of one client that read along with each other are one holder. The answer may be out
// of date when it arrives. A free lock has the kind [KindNone] and no holders.
//
// It is repeated for Options.RetryBudget while the server is in trouble. The error matches ErrUnavailable if
// the server could not be reached until then or until ctx ended, ErrClosed, ErrWrongKind if the key is another
// kind of object (the Inspection then says what it is), ErrInvalid if the name cannot be used, or is a
// *rueidis.RedisError if the server refuses.
func (l *ReadLock) Inspect(ctx context.Context) (Inspection, error) {
	return l.baseLock.Inspect(ctx)
}
