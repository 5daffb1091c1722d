package latchkey

import (
	"context"
	"slices"

	"github.com/latchkey-go/latchkey/internal/primitive/admin"
	"github.com/latchkey-go/latchkey/internal/primitive/fair"
)

// FairLock is a [Lock] that is granted in the order of arrival, among all waiters of all processes; on the
// wire it is Redisson's fair lock. What differs from a Lock:
//
//   - Lock waits in its turn: until every earlier waiter, in any process, has held the lock or has left. A
//     re-entry is granted at once, ahead of all waiters. The place in the queue is that of the first attempt
//     that reached the server. A live waiter keeps it however long it waits, and takes it again, in the old
//     order, if the server lost it. [FairLock.Waiters] shows the queue. Each waiter has a place in Redis, and
//     so costs more than that of a Lock.
//   - A waiter that is silent for Tuning.StaleWaiterTimeout (5 s by default), because its process was killed
//     or cut off, is skipped until it reports again. If many are silent, that time passes once, not once for
//     each. The lock idles for one StaleWaiterTimeout if the next waiter dies, or gives up, and the server
//     cannot know it. A waiter of Redisson counts as alive while it is subscribed.
//   - TryLock does not join the queue. It succeeds only if nobody holds the lock and nobody waits for it.
//   - Nothing is passed on in memory ([Tuning].Turn).
//
// Do not use a name as a FairLock in one place and as another lock in another. The two exclude each other,
// but the other lock does not know the queue and wakes no waiter in it.
type FairLock struct{ baseLock }

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
