package latchkey

import (
	"slices"

	"github.com/latchkey-go/latchkey/internal/primitive/fair"
)

// NewFairLock returns a lock that is granted in the order of arrival, among all waiters of all
// processes; on the wire it is Redisson's fair lock. It sends nothing. What differs from
// [Client.NewLock]:
//
//   - Lock waits until every earlier waiter, in any process, has held the lock or has left. A
//     re-entry is granted at once. The place in the queue is that of the first attempt that reached
//     the server. A live waiter keeps it however long it waits, and takes it again if the server
//     lost it. [Lock.Waiters] shows the queue. Each waiter has a place in Redis, and so costs more.
//   - A waiter that is silent for Tuning.StaleWaiterTimeout (5 s by default), because its process
//     was killed or cut off, is skipped until it reports again. If many are silent, that time
//     passes once. The lock idles for that time if the next waiter dies, or gives up, and the
//     server cannot know it. A waiter of Redisson counts as alive while it is subscribed.
//   - TryLock succeeds only if nobody holds the lock and nobody waits for it.
//   - Nothing is passed on in memory ([Tuning].Turn).
//
// Do not use a name for a fair lock in one place and for another lock in another. The two exclude
// each other, but the other lock does not know the queue and wakes no waiter in it.
func (c *Client) NewFairLock(name string, options ...fairLockOption) *Lock {
	return newLock(c, fair.Spec(c.engine(), slices.Contains(options, Fenced())), name)
}

// A fairLockOption is an option of [Client.NewFairLock]: [Fenced].
type fairLockOption struct{ fenced bool }

// Fenced gives the holds of a fair lock fencing tokens, as [Client.NewFencedLock] does. Redisson
// has no such lock; its fair lock of the same name sees an ordinary fair lock.
func Fenced() fairLockOption { return fairLockOption{fenced: true} }
