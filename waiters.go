package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/primitive/admin"
)

// Waiter is an owner that waits for a lock.
type Waiter struct {
	// Owner is the owner that the waiter will be once it holds the lock.
	Owner Owner
	// Label is the label of the waiter's client, or "": see [Holder].
	Label string
	// Mine reports whether the waiter belongs to the client that listed it.
	Mine bool
	// Caller is the owner that the waiting call named, with [Caller] or [WithOwner], if Mine is true. A
	// program can find its own place with it. Caller is the zero Owner if the call named none. It
	// differs from Owner, since each acquisition has an owner of its own in Redis.
	Caller Owner
	// Age is how long the waiter has been waiting, by the clock of the server. It is 0 if AgeKnown
	// is false.
	Age time.Duration
	// AgeKnown is false for a waiter of Redisson, which does not record when it began to wait, and
	// for a waiter for a read/write lock whose place in the queue is lost.
	AgeKnown bool
	// Alive is how long the waiter keeps its place without another sign of life. It is 0 if the
	// waiter will be passed over, and NoExpiry in a queue that does not record this.
	Alive time.Duration
	// Permits is how many permits a waiter in the queue of a semaphore wants; 0 otherwise.
	Permits int
}

// Waiters lists the owners in the queues of a lock of any kind, or of a semaphore whose permits have ids, in
// queue order; nil if there are none. The waiters of a fair lock come first, as [FairLock.Waiters] lists them.
// For a mutex or another lock that is not fair, and for a [PermitSemaphore], the list has one owner for each
// client of this library; its other goroutines wait behind it in memory. Some waiters are in no queue: the
// goroutines of a client that holds the lock itself, if it is not fair, those of a latch, readers, and
// Redisson's waiters for a lock that is not fair. [Object] counts the clients that listen. It also counts the
// clients in the queue of a [Semaphore], which has no owners that Waiters could list.
//
// Waiters reads 500 waiters at a time. In a list of more than 500, waiters that come or go during the call may
// be missing. It changes nothing. Labels are read as [FairLock.Waiters] reads them. The entry of a client that
// waits for a lock that is not fair is Mine for each of its goroutines, and Caller is the owner of the first of
// them. The errors are those of FairLock.Waiters.
func (c *Client) Waiters(ctx context.Context, name string) ([]Waiter, error) {
	names := c.engine().Config.Names(name)
	return asWaiters(admin.ListWaiters(ctx, c.engine(), names, admin.AllWaiters))
}

// asWaiters returns what a method of the program returns for what the inside returned.
func asWaiters(found []admin.Waiter, err error) ([]Waiter, error) {
	var all []Waiter
	for _, w := range found {
		all = append(all, Waiter{
			Owner: Owner(w.Owner), Label: w.Label, Mine: w.Mine, Caller: Owner(w.Caller),
			Age: w.Age, AgeKnown: w.AgeKnown, Alive: w.Alive, Permits: w.Permits,
		})
	}
	return all, err
}

// Waiting returns how many calls of this client wait now, by the kind of the object they wait for.
// Kinds for which no call waits are missing. It sends nothing and takes no lock.
//
// A call waits from its first refusal, or from when it lines up behind another call of this client,
// until it is about to return. Lock, Acquire, Campaign, Await, Do and the like are counted. Tries
// are not, nor are loops over [Election.Observe]. A [RedLock] counts in the client of its first member
// while it waits in line behind others of the program, and like a [MultiLock] from its first failed
// round on. While a MultiLock waits for one member, that wait counts under the kind of the member.
//
// [Client.Waiters] lists the waiters of one object in all processes.
func (c *Client) Waiting() map[Kind]int {
	now := map[Kind]int{}
	for kind, n := range c.engine().Waiting.Counts.Now {
		now[Kind(kind)] = n
	}
	return now
}
