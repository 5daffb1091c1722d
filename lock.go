package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/primitive/admin"
	"github.com/latchkey-go/latchkey/internal/primitive/group"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
)

// Lock is a lock of one key. [Client.NewLock] returns the usual one; the other constructors say
// what differs from it. Any number of goroutines may share one Lock.
type Lock struct{ inside acquire.Lock }

var _ Locker = (*Lock)(nil)

func newLock(c *Client, s *acquire.Spec, name string) *Lock { return &Lock{s.With(c.engine(), name)} }

// NewLock returns the re-entrant lock with that name; on the wire it is Redisson's RLock. It sends
// nothing.
//
// An acquisition under the context of a hold ([Hold.Context]), or by the same owner ([As],
// [WithOwner]), re-enters the hold. The lock is free after as many releases.
//
// Waiters of one client are served first come, first served: Unlock passes the lock in memory to
// the next of them, for a turn ([Tuning].Turn). Then another client has its turn, in the order in
// which they began to wait. That is not guaranteed: a client that finds the lock free acquires it,
// and processes of Redisson race. [Client.NewFairLock] keeps the order among all waiters.
func (c *Client) NewLock(name string) *Lock { return newLock(c, lock.Reentrant, name) }

// self returns nil for a lock that no constructor has made.
func (l *Lock) self() group.Member {
	if l.inside.Spec == nil {
		return nil
	}
	return group.Single{Lock: &l.inside}
}

// Name returns the name as the program gave it.
func (l *Lock) Name() string { return l.inside.Name() }

// Kind returns the kind that the constructor chose, as events have it.
func (l *Lock) Kind() Kind { return Kind(l.inside.Spec.Kind) }

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
//   - ErrUpgrade: the caller's own hold reads, and this call would write
//   - ErrClosed: the client is closed, or was closed during the call
//   - ErrWrongKind: the key is another kind of object, or data of an application
//   - ErrInvalid: the name or an option cannot be used; nothing was sent
//   - *rueidis.RedisError: the server refuses for a reason that waiting does not change, such as a
//     missing permission or a lack of memory
//
// No error matches both ErrNotAcquired and ErrUnavailable; the last attempt decides. If ctx ended,
// the error also matches that of ctx. The end of Wait matches no context error. If ctx had ended
// before the call, nothing was sent, and the error matches only that of ctx.
func (l *Lock) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return asHold(l.inside.Acquire(ctx, "lock", true, usualSettings(options)))
}

// TryLock makes one attempt to acquire the lock and does not wait for its holder. It takes the
// options of Lock except [Wait].
//
// ErrNotAcquired means that another owner holds the lock. ErrUnavailable means that the server
// could not be reached: an attempt that meets a server in trouble (silent, loading, failing over)
// is repeated until it is answered, ctx ends, or Options.RetryBudget is spent. Everything else is
// as for Lock.
func (l *Lock) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
	return asHold(l.inside.Acquire(ctx, "try lock", false, usualSettings(options)))
}

// Do acquires the lock as Lock does, with its options, calls fn, and releases the lock when fn
// returns or panics, even if ctx has ended.
//
// The context of fn is that of the hold ([Hold.Context]): it ends when ctx ends or the hold is
// lost, HoldFrom finds the hold in it, and an acquisition of this lock under it is a re-entry.
//
// If the lock is not acquired, Do returns the error of Lock and does not call fn. Otherwise it
// returns the error of fn, joined with that of [Hold.Err] (ErrLost, ErrMaxHold, ErrClosed) if the
// hold ended while fn ran, or with that of Unlock if the release failed. ErrNotAcquired and
// ErrUnavailable of this call mean that fn was not called. If fn ran and its release was not
// confirmed, the error matches ErrUnknownOutcome and not ErrUnavailable: do not repeat the work.
func (l *Lock) Do(ctx context.Context, fn func(context.Context) error, options ...LockOption) error {
	return acquire.Do(ctx, l.self(), fn, settingsOf(options))
}

// HoldFrom returns the hold of this lock that ctx carries, or nil: the hold whose [Hold.Context],
// or whose Do, made ctx or one of its ancestors. It sends nothing. A lock that is held as a member
// of several counts. Of a read/write lock each side has its own holds. Inside Do it returns the
// hold, and with it the fencing token:
//
//	err := lock.Do(ctx, func(ctx context.Context) error {
//		return save(ctx, lock.HoldFrom(ctx).Token())
//	})
//
// Of several holds, as after a re-entry, it is the innermost one that is still held, or, if none
// is, the innermost one: [Hold.Err] tells whether ctx holds the lock, also for the nil Hold. Only
// holds of the client that made this lock count.
func (l *Lock) HoldFrom(ctx context.Context) *Hold { return (*Hold)(l.inside.HandleFrom(ctx)) }

// Inspect returns who holds the lock, how often, and for how long. Of a read/write lock it shows
// both sides, and the side of each [Holder]; goroutines of one client that read along with each
// other are one holder. A free lock has the kind [KindNone]. Don't branch on the answer, acquire
// the lock; [Hold.ValidFor] tells how long your own hold lasts.
//
// Everything else is as for [Client.Inspect], but another kind of object is an ErrWrongKind; the
// Object then says what it is.
func (l *Lock) Inspect(ctx context.Context) (Object, error) { return asObject(l.self().Inspect(ctx)) }

// Waiters lists the owners in the queue of the lock: see [Client.Waiters]. Of a fair lock these are
// all waiters.
func (l *Lock) Waiters(ctx context.Context) ([]Waiter, error) {
	return asWaiters(admin.ListWaiters(ctx, l.inside.Client, l.inside.Names, admin.QueueOf(l.inside.Spec.Kind)))
}

// ForceUnlock takes the lock from its holder, with all re-entries, gives it to a waiter, and
// reports whether it was held. It removes only the owner that it found: a hold that begins later is
// not touched.
//
// The former holder is not notified. If it is a client of this library, its hold ends with ErrLost
// at its next renewal, at most a third of its lease later, or within Tuning.PollCeiling if
// goroutines of its client wait (except for fair locks and readers). A hold with a fixed lease
// ([Lease]) ends when that is over. Until then the holder continues, so two owners may be in the
// critical section.
//
// The errors are those of Inspect, and ErrUnknownOutcome: the removal was sent and not answered.
// You may repeat it.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) {
	return l.self().ForceUnlock(ctx, forceOne)
}
