package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/primitive/admin"
)

// Waiter is an owner that waits for a lock or for permits.
type Waiter struct {
	Owner Owner  // that the waiter will be once it holds the lock
	Label string // of the waiter's client, or "": see [Holder]
	Mine  bool   // the waiter belongs to the client that listed it
	// Caller is the owner that the waiting call named, with [As] or [WithOwner], if Mine is true,
	// or else the zero Owner. A program can find its own place with it: Owner differs, since each
	// acquisition has an owner of its own in Redis.
	Caller Owner
	// Age is how long the waiter has been waiting, by the clock of the server. It is negative if
	// that is unknown: for a waiter of Redisson, and for a waiter for a read/write lock whose place
	// in the queue is lost.
	Age time.Duration
	// Alive is how long the waiter keeps its place without another sign of life. It is 0 if the
	// waiter will be passed over, and NoExpiry in a queue that does not record this.
	Alive   time.Duration
	Permits int // that a waiter in the queue of a semaphore wants; else 0
}

// Waiters lists the owners in the queues of a lock of any kind, or of a semaphore whose permits
// have ids, in queue order; nil if there are none. It changes nothing.
//
// The queue of a fair lock or a fair semaphore has every waiter. The queue of another lock, or of a
// [Client.NewPermitSemaphore], has one owner for each client of this library; its other goroutines
// wait behind it in memory. That entry is Mine for each of them, and Caller is the owner of the
// first. In no queue are the goroutines of a client that holds the lock itself, if it is not fair,
// those of a latch, readers, and Redisson's waiters for a lock that is not fair: [Object] counts
// the clients that listen.
//
// Waiters reads 500 waiters at a time. In a longer list, waiters that come or go during the call
// may be missing or listed twice. Labels are read, and errors returned, as by [Client.Inspect];
// another kind of object is an ErrWrongKind.
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
			Age: w.Age, Alive: w.Alive, Permits: w.Permits,
		})
	}
	return all, err
}

// Waiting returns how many calls of this client wait now, by the kind of the object they wait for.
// Kinds for which no call waits are missing. It sends nothing.
//
// A call waits from its first refusal, or from when it lines up behind another call of this client,
// until it is about to return. Lock, Acquire, Campaign, Await, Do and the like are counted. Tries
// are not, nor are loops over [Election.Observe]. A lock of several counts in the client of its
// first member, and under the kind of a member while it waits for that.
func (c *Client) Waiting() map[Kind]int {
	now := map[Kind]int{}
	for kind, n := range c.engine().Waiting.Counts.Now() {
		now[Kind(kind)] = n
	}
	return now
}
