package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/primitive/admin"
	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
)

// FairSemaphore is a [PermitSemaphore] that grants its permits in the order of arrival, among all goroutines
// of all processes and not only among clients. A waiter costs more: each one has a place in a queue in Redis.
// What differs from a PermitSemaphore:
//
//   - Acquire, AcquireN and Do wait until every earlier waiter, in any process, has received its permits or
//     has left. While the first waiter wants more than are free, no waiter behind it gets any. A request for
//     more permits than there are in all blocks nobody while some are free.
//   - A live waiter keeps its place however long it waits, and gets it back if Redis lost it. One that is
//     silent for Tuning.StaleWaiterTimeout (5 s by default), because its process was killed or cut off, is
//     passed over until it reports again; that time passes once, not once for each. A waiter that gives up
//     leaves the queue, in the background. After a Delete, waiters with [AwaitSet] keep their places.
//   - TryAcquire and TryAcquireN do not join the queue, and succeed only if nobody waits.
//
// The clients of a PermitSemaphore of the same name wait in the same queue. Redisson shares the permits but
// does not know the queue; while its processes wait, each has its turn as often as a waiter.
type FairSemaphore struct{ basePermitSemaphore }

// NewFairSemaphore returns the fair semaphore with that name. It sends nothing. If braces enclose the
// whole name, as in {x}, each call returns ErrInvalid: the semaphore would share keys with x.
func (c *Client) NewFairSemaphore(name string) *FairSemaphore {
	s := &FairSemaphore{basePermitSemaphore{inside: semaphore.NewFairPool(c.engine(), name)}}
	s.count = &s.inside.Count
	return s
}

// Waiters lists the waiters for permits, in the order in which they will get them; nil if nobody
// waits. It changes nothing. Owner is the id of the permit that the waiter will have, or of the
// first one if it wants several. Waiters requests 500 waiters at a time, and repeats a request for
// at most Options.RetryBudget. In a list of more than 500, waiters that come or go during the call
// may be missing or listed twice. Labels take more commands, as for [FairLock.Waiters].
//
// The error matches ErrInvalid for a bad name (nothing was sent), ErrWrongKind, ErrClosed, or
// ErrUnavailable if the server did not answer.
func (s *FairSemaphore) Waiters(ctx context.Context) ([]Waiter, error) {
	return asWaiters(admin.ListWaiters(ctx, s.inside.Client, s.inside.Names, admin.PermitWaiters))
}
