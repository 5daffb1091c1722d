package latchkey

import "github.com/latchkey-go/latchkey/internal/primitive/semaphore"

// NewFairSemaphore returns a semaphore that grants its permits in the order of arrival, among all
// goroutines of all processes and not only among clients. It sends nothing. If braces enclose the
// whole name, as in {x}, each call returns ErrInvalid: the semaphore would share keys with x. What
// differs from [Client.NewPermitSemaphore]:
//
//   - Acquire, AcquireN and Do wait until every earlier waiter, in any process, has received its
//     permits or has left. Each waiter has a place in the queue in Redis, and so costs more.
//   - A live waiter keeps its place however long it waits, and gets it back if Redis lost it. One
//     that is silent for Tuning.StaleWaiterTimeout (5 s by default), because its process was killed
//     or cut off, is passed over until it reports again; that time passes once, not once for each.
//     After a Delete, waiters with [AwaitSet] keep their places.
//   - While processes of Redisson wait, each has its turn as often as a waiter.
func (c *Client) NewFairSemaphore(name string) *PermitSemaphore {
	return &PermitSemaphore{semaphore.NewFairPool(c.engine(), name)}
}
