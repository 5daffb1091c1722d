package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/primitive/lock"
)

// Lock is the re-entrant lock; on the wire it is Redisson's RLock. An acquisition under the context of a hold
// ([Hold.Context]), or by the same owner ([As], [WithOwner]), re-enters the hold; the lock is free after as
// many releases.
//
// Waiters of one client are served first come, first served: Unlock passes the lock in memory to the next of
// them, for a turn ([Tuning].Turn). Then another client has its turn, in the order in which they began to
// wait. That is not guaranteed: a client that finds the lock free acquires it, and processes of Redisson race.
// [FairLock] keeps the order among all waiters.
type Lock struct{ baseLock }

var _ Locker = (*Lock)(nil)

// NewLock returns the re-entrant lock with that name. It sends nothing.
func (c *Client) NewLock(name string) *Lock {
	return &Lock{newBaseLock(c.engine(), lock.Reentrant, name)}
}

// Lock acquires the lock. It waits while another owner holds it, until ctx ends or the time of
// [Wait] is over; with neither, it waits without limit. The other options are [Lease], [MaxHold],
// [AtLeast], [As] and [Note].
//
// The client renews the hold until Unlock, unless Lease fixes its lease. Canceling ctx after Lock
// returns does not affect the hold. If ctx carries a hold of this lock ([Hold.Context]), or As or
// [WithOwner] names its owner, Lock re-enters that hold at once and returns a Hold of its own,
// which needs its own Unlock.
//
// A nil error means that you hold the lock. After any other error this call holds nothing, and a
// hold that it tried to re-enter is not affected. While the server cannot be reached, Lock keeps
// trying. The error matches one of
//
//   - ErrNotAcquired: another owner held the lock until ctx ended or the time of Wait was over
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
func (l *Lock) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return l.baseLock.Lock(ctx, options...)
}

// TryLock makes one attempt to acquire the lock and does not wait for its holder. The options
// are [Lease], [MaxHold], [AtLeast], [As] and [Note].
//
// ErrNotAcquired means that another owner holds the lock. ErrUnavailable means that the server
// could not be reached: an attempt that meets a server in trouble (silent, loading, failing over)
// is repeated until it is answered, ctx ends, or Options.RetryBudget is spent. All other errors,
// the re-entry of a hold on ctx, and the state left behind are as for Lock.
func (l *Lock) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
	return l.baseLock.TryLock(ctx, options...)
}

// Do acquires the lock as Lock does, with the same options and the same waiting, calls fn,
// and releases the lock when fn returns or panics.
//
// The context of fn carries the hold: HoldFrom returns it, and an acquisition of this lock under
// the context is a re-entry. The context ends when ctx ends or the hold is lost (its cause then
// matches ErrLost). The release works even if ctx has ended, as [Hold.Unlock] does.
//
// If the lock is not acquired, Do returns the error of Lock and does not call fn. Otherwise it
// returns the error of fn. It joins that with the error of [Hold.Err] (ErrLost, ErrMaxHold,
// ErrClosed) if the hold ended while fn ran, even if fn returned nil, or with the error of Unlock
// if the release failed.
//
// ErrNotAcquired and ErrUnavailable of this call mean that fn was not called. If fn ran and
// its release was not confirmed, the error matches ErrUnknownOutcome and not ErrUnavailable:
// do not repeat the work.
func (l *Lock) Do(ctx context.Context, fn func(context.Context) error, options ...LockOption) error {
	return l.baseLock.Do(ctx, fn, options...)
}

// HoldFrom returns the hold of this lock that ctx carries, or nil: the hold whose [Hold.Context], or
// whose Do, made ctx or one of its ancestors, however many other locks are held in between. A lock
// that is held as a member of a [MultiLock] or a [RedLock] counts. Of a read/write lock each side
// has its own holds. HoldFrom sends nothing to the server. Inside Do it returns the hold, and with
// it the fencing token:
//
//	err := lock.Do(ctx, func(ctx context.Context) error {
//		return save(ctx, lock.HoldFrom(ctx).Token())
//	})
//
// If ctx carries several holds of the lock, as after a re-entry, it is the innermost one that is
// still held. If none is held, it is the innermost one, which is over: [Hold.Err] tells whether ctx
// holds the lock, also for the nil Hold, which behaves like a released one. Only holds of the
// client that made this lock count; that includes a guest's, which entered [As] an owner.
func (l *Lock) HoldFrom(ctx context.Context) *Hold { return l.baseLock.HoldFrom(ctx) }

// ForceUnlock takes the lock from its holder, with all re-entries, gives it to a waiter, and
// reports whether it was held. It removes only the owner that it found: a hold that begins later is
// not touched.
//
// The former holder is not notified. If it is a client of this library, its hold ends with ErrLost
// at its next renewal, at most a third of its lease later. A hold with a fixed lease ([Lease]) ends
// when that is over. If other goroutines of its client wait for the lock, the hold ends within
// Tuning.PollCeiling (except for fair locks and readers). Until then the holder continues, so two
// owners may be in the critical section.
//
// The errors are those of Inspect, and ErrUnknownOutcome: the removal was sent and not answered. It
// may or may not have happened, and you may repeat it.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) { return l.baseLock.ForceUnlock(ctx) }
