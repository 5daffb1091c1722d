package latchkey

import (
	"context"
	"time"
)

// WriteLock is the write side of an [RWLock]. One owner holds it, alone.
type WriteLock struct{ *baseLock }

// Lock acquires the lock to write, alone. It waits while another owner reads or writes, until ctx
// ends or the time of [Wait] is over; with neither, it waits without limit. The other options are
// [Lease], [MaxHold], [AtLeast], [By] and [Note].
//
// While it waits it keeps new readers out: for one Options.StaleWaiterTimeout at first, then, after
// a pause of a fifth of it, for twice as long, up to a minute at a time. So Lock succeeds if the
// current readers leave within such a time. A Lock that gives up lets readers in at once, or after
// one StaleWaiterTimeout if the server cannot be reached. Readers of Redisson are never kept out.
// Writers are served in the order that [Lock] describes.
//
// If ctx carries a write hold of this lock ([Hold.Context]), or By or [WithOwner] names its owner,
// Lock re-enters that hold at once and returns a Hold of its own, which needs its own Unlock. If
// the hold only reads, Lock returns ErrUpgrade at once, since it would wait for itself. For an owner
// of another client it returns ErrInvalid.
//
// The client renews the hold until Unlock, unless Lease fixes its lease. Canceling ctx after Lock
// returns does not affect the hold. [Hold.Downgrade] turns it into a read hold.
//
// A nil error means that you hold the lock to write. After any other error this call holds nothing,
// and a hold that it tried to re-enter is not affected. While the server cannot be reached, Lock
// keeps trying. The error matches one of
//
//   - ErrNotAcquired: another owner read or wrote until ctx ended or the time of Wait was over
//   - ErrUnavailable: the server could not be reached or did not answer by the end of the wait
//   - ErrUnknownOutcome, besides one of these two: a request was sent and not answered, perhaps an
//     earlier one; the client undoes in the background what it may have acquired
//   - ErrNotReplicated: fewer replicas than [Options.Replicas] requires confirmed the acquisition;
//     it was undone
//   - ErrNotAcquired and ErrLost: the hold to be re-entered was lost before this call entered it
//   - ErrUpgrade: the caller reads; its read hold is not affected
//   - ErrClosed: the client is closed, or was closed during the call
//   - ErrWrongKind: the key is another kind of object, or data of an application
//   - ErrInvalid: the name or an option cannot be used; nothing was sent
//   - *rueidis.RedisError: the server refuses for a reason that waiting does not change,
//     such as a missing permission or a lack of memory
//
// No error matches both ErrNotAcquired and ErrUnavailable; the last attempt decides. If ctx ended,
// the error also matches that of ctx. The end of Wait matches no context error. If ctx had ended
// before the call, nothing was sent, and the error matches only that of ctx.
func (l *WriteLock) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return asHold(l.acquire(ctx, "lock", true, usualSettings(options)))
}

// TryLock makes one attempt to acquire the lock to write, does not wait, and keeps no readers out.
// The options are [Lease], [MaxHold], [AtLeast], [By] and [Note].
//
// ErrNotAcquired means that another owner reads or writes. ErrUpgrade means that the caller reads:
// release the read hold first. ErrUnavailable means that the server could not be reached: an
// attempt that meets a server in trouble (silent, loading, failing over) is repeated until it is
// answered, ctx ends, or Options.RetryBudget is spent. All other errors, the re-entry of a hold on
// ctx, and the state left behind are as for Lock.
func (l *WriteLock) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
	return asHold(l.acquire(ctx, "try lock", false, usualSettings(options)))
}

// IsLocked reports whether anybody, this client included, holds the lock to write. It is false
// while others only read. It queries the server, and the answer may be out of date when it arrives.
// Don't branch on it; acquire the lock.
//
// The errors are those of Inspect.
func (l *WriteLock) IsLocked(ctx context.Context) (bool, error) { return l.isLocked(ctx, true) }

// ForceUnlock ends the write hold, and read holds of the same owner, wakes waiters, and reports
// whether there was one. While others read it does nothing, and reports false.
//
// The former holders are not notified. Those of this library notice at their next renewal, at most a
// third of their lease later, or within Options.PollCeiling if goroutines of their client are in
// line to write. Their holds then end with ErrLost. Until then they continue, alongside the next
// holder. A hold that begins after ForceUnlock has looked is not touched.
//
// The errors are those of Inspect, and ErrUnknownOutcome: a removal was sent and not answered. It
// may or may not have happened, and you may repeat it.
func (l *WriteLock) ForceUnlock(ctx context.Context) (bool, error) {
	return l.baseLock.ForceUnlock(ctx)
}

// RemainingLease returns how long the lock as a whole, for readers or a writer, stays held if
// nobody renews it: 0 if it is free, [NoExpiry] if its key has lost its expiry, which only a
// foreign command can cause. Live holders renew their leases, so the lock may stay held for longer.
//
// The errors are those of Inspect.
func (l *WriteLock) RemainingLease(ctx context.Context) (time.Duration, error) {
	return l.baseLock.RemainingLease(ctx)
}

// Inspect returns who reads and who writes. It shows both sides of the lock, and the side of each
// [Holder]. Goroutines of one client that read along with each other are one holder. The answer may
// be out of date when it arrives. A free lock has the kind [KindNone] and no holders.
//
// Inspect repeats its request for Options.RetryBudget while the server is in trouble. The error
// matches ErrUnavailable if the server could not be reached until then or until ctx ended,
// ErrClosed, ErrWrongKind if the key is another kind of object (the Inspection then says what it
// is), ErrInvalid if the name cannot be used, or is a *rueidis.RedisError if the server refuses.
func (l *WriteLock) Inspect(ctx context.Context) (Inspection, error) {
	return l.baseLock.Inspect(ctx)
}
