package latchkey

import (
	"context"
	"slices"

	"github.com/latchkey-go/latchkey/internal/primitive/admin"
	"github.com/latchkey-go/latchkey/internal/primitive/fair"
)

// FairLock is a re-entrant lock that is granted in the order of arrival, among all waiters of all
// processes. It is wire-compatible with Redisson's fair lock. Apart from the order it behaves like
// a [Lock]. A waiter costs more: each one has a place in a queue in Redis.
//
// The order is the one in which waiters reached the server. A live waiter keeps its place however
// long it waits, and gets it back if Redis lost it. A waiter that is silent for
// Tuning.StaleWaiterTimeout, because its process was killed or cut off, is skipped. If many
// waiters are silent, that time passes once, not once for each. A waiter of Redisson counts as
// alive while it is subscribed.
//
// Do not use a name as a FairLock in one place and as another lock in another. The two exclude each
// other, but the other lock does not know the queue and wakes no waiter in it.
type FairLock struct{ *baseLock }

var _ Locker = (*FairLock)(nil)

// A fairLockOption is an option of [Client.NewFairLock]: [Fenced].
type fairLockOption struct{ fenced bool }

// Fenced gives the holds of a fair lock fencing tokens like those of a [FencedLock]. Redisson has no
// such lock; its fair lock of the same name sees an ordinary fair lock.
func Fenced() fairLockOption { return fairLockOption{fenced: true} }

// NewFairLock returns the fair lock with that name. It sends nothing.
func (c *Client) NewFairLock(name string, options ...fairLockOption) *FairLock {
	fenced := slices.Contains(options, Fenced())
	return &FairLock{newBaseLock(c.engine(), fair.Spec(c.engine(), fenced), name)}
}

// Lock acquires the lock in its turn. It waits until nobody holds the lock and every earlier
// waiter, in any process, has held it or has left. It gives up when ctx ends or the time of [Wait]
// is over; with neither, it waits without limit. The other options are [Lease], [MaxHold],
// [AtLeast], [As] and [Note].
//
// The place in the queue is that of the first attempt that reached the server. The waiter keeps it
// for as long as this process is alive and reaches the server, and takes it again, in the old
// order, if the server lost it. A process that is silent for Tuning.StaleWaiterTimeout (5 s by
// default) is skipped until it reports again. If the next waiter dies and the server cannot know
// it, the lock idles for one StaleWaiterTimeout.
//
// A Lock that gives up leaves the queue and passes the lock on. If it cannot reach the server, the
// next waiter waits for one StaleWaiterTimeout. [FairLock.Waiters] shows the queue.
//
// The client renews the hold until Unlock, unless Lease fixes its lease. Canceling ctx after Lock
// returns does not affect the hold. If ctx carries a hold of this lock ([Hold.Context]), or As or
// [WithOwner] names its owner, Lock re-enters that hold at once, ahead of all waiters, and returns
// a Hold of its own, which needs its own Unlock.
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
func (l *FairLock) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return asHold(l.inside.Acquire(ctx, "lock", true, usualSettings(options)))
}

// TryLock makes one attempt to acquire the lock. It does not join the queue, and succeeds only if
// nobody holds the lock and nobody waits for it. The options are [Lease], [MaxHold], [AtLeast],
// [As] and [Note].
//
// ErrNotAcquired means that another owner holds the lock or waits for it. A dead waiter counts
// until it has been silent for Tuning.StaleWaiterTimeout. ErrUnavailable means that the server
// could not be reached: an attempt that meets a server in trouble (silent, loading, failing over)
// is repeated until it is answered, ctx ends, or Options.RetryBudget is spent. All other errors,
// the re-entry of a hold on ctx, and the state left behind are as for Lock.
func (l *FairLock) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
	return asHold(l.inside.Acquire(ctx, "try lock", false, usualSettings(options)))
}

// Waiters lists the owners that wait for the lock, in the order in which they will be granted it;
// nil if there are none. It changes nothing. It requests 500 waiters at a time, and repeats a
// request for at most Options.RetryBudget. In a list of more than 500, waiters that come or go
// during the call may be missing or listed twice. The labels of other clients' waiters take one
// more command for every 64 clients, or, in a cluster, for every client.
//
// The error matches ErrInvalid for a bad name (nothing was sent), ErrWrongKind if the key is not a
// lock, ErrClosed, or ErrUnavailable if the server did not answer.
func (l *FairLock) Waiters(ctx context.Context) ([]Waiter, error) {
	return asWaiters(admin.ListWaiters(ctx, l.inside.Client, l.inside.Names, admin.FairWaiters))
}
