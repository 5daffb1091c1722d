package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/primitive/admin"
	"github.com/latchkey-go/latchkey/internal/primitive/group"
)

// Locker is the interface of all locks, and what [NewMultiLock] and [NewRedLock]
// take. Only the locks of this package, and types that embed one, are Lockers; such a type counts
// as the lock that it embeds. Each type documents its methods in full: see [Lock.Lock],
// [FairLock.Lock] and so on. Any number of goroutines may share one lock.
type Locker interface {
	// Name returns the name as the program gave it.
	Name() string
	// Lock acquires the lock, and waits while it is held.
	Lock(ctx context.Context, options ...LockOption) (*Hold, error)
	// TryLock makes one attempt to acquire the lock.
	TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error)
	// Do acquires the lock, calls fn, and releases the lock.
	Do(ctx context.Context, fn func(context.Context) error, options ...LockOption) error

	// HoldFrom returns the hold of the lock that ctx carries, or nil. It sends nothing.
	HoldFrom(ctx context.Context) *Hold

	self() group.Member // the lock itself, without a type that embeds it
}

// membersOf returns locks as members of several. An element is nil for a lock that is nil or embeds nil.
func membersOf(locks []Locker) []group.Member {
	members := make([]group.Member, len(locks))
	for i, l := range locks {
		members[i] = memberOf(l)
	}
	return members
}

// memberOf returns the lock that l is or embeds, or nil if that is nil. Only a call tells: it then panics.
func memberOf(l Locker) (m group.Member) {
	defer func() { _ = recover() }()
	return l.self()
}

// baseLock is what all locks of one key have in common.
type baseLock struct{ inside acquire.Lock }

func newBaseLock(c *ownership.Engine, s *acquire.Spec, name string) *baseLock {
	return &baseLock{*acquire.NewLock(c, s, name)}
}

func (l *baseLock) self() group.Member { return group.Single{Lock: &l.inside} }

// Name returns the name as the program gave it.
func (l *baseLock) Name() string { return l.inside.Name() }

// Client returns the client that made the lock.
func (l *baseLock) Client() *Client { return (*Client)(l.inside.Client.Handle) }

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
func (l *baseLock) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return asHold(l.inside.Acquire(ctx, "lock", true, usualSettings(options)))
}

// TryLock makes one attempt to acquire the lock and does not wait for its holder. The options
// are [Lease], [MaxHold], [AtLeast], [As] and [Note].
//
// ErrNotAcquired means that another owner holds the lock. ErrUnavailable means that the server
// could not be reached: an attempt that meets a server in trouble (silent, loading, failing over)
// is repeated until it is answered, ctx ends, or Options.RetryBudget is spent. All other errors,
// the re-entry of a hold on ctx, and the state left behind are as for Lock.
func (l *baseLock) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
	return asHold(l.inside.Acquire(ctx, "try lock", false, usualSettings(options)))
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
func (l *baseLock) Do(ctx context.Context, fn func(context.Context) error, options ...LockOption) error {
	return acquire.Do(ctx, l.self(), fn, settingsOf(options))
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
func (l *baseLock) HoldFrom(ctx context.Context) *Hold { return (*Hold)(l.inside.HandleFrom(ctx)) }

// IsLocked reports whether anybody holds the lock, this client included. It queries the server, and
// the answer may be out of date when it arrives. Don't branch on it; acquire the lock.
//
// The errors are those of Inspect.
func (l *baseLock) IsLocked(ctx context.Context) (bool, error) {
	i, err := l.self().Look(ctx)
	return err == nil && i.Locked(), err
}

// RemainingLease returns how long the lock stays held if nobody renews it: 0 if it is free,
// [NoExpiry] if its key has lost its expiry, which only a foreign command can cause. It queries the
// server. A live holder renews its lease, so the lock may stay held for longer. [Hold.ValidFor]
// tells how long your own hold lasts, without a query.
//
// The errors are those of Inspect.
func (l *baseLock) RemainingLease(ctx context.Context) (time.Duration, error) {
	i, err := l.self().Look(ctx)
	if err != nil {
		return 0, err
	}
	return i.TTL, nil
}

// Inspect returns who holds the lock, how often, and for how long. It reads from the server that
// decides about the lock, never from a replica. The answer may be out of date when it arrives. A
// free lock has the kind [KindNone] and no holders. Labels and notes of holders of other clients
// take one more command, as for [Client.Inspect].
//
// Inspect repeats the request for Options.RetryBudget while the server is in trouble. The error
// matches ErrUnavailable if the server could not be reached in that time or before ctx ended,
// ErrClosed, ErrWrongKind if the key is another kind of object (the Inspection then says what it
// is), ErrInvalid if the name cannot be used, or is a *rueidis.RedisError if the server refuses.
func (l *baseLock) Inspect(ctx context.Context) (Inspection, error) {
	return asInspection(l.self().Inspect(ctx))
}

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
func (l *baseLock) ForceUnlock(ctx context.Context) (bool, error) {
	return l.self().ForceUnlock(ctx, forceOne)
}

// forceOne takes a lock of one key from its holder.
func forceOne(ctx context.Context, p *ownership.Lock) (bool, error) {
	return admin.ForceUnlock(ctx, p.Client, p.Names, p.Spec)
}
