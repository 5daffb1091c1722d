package latchkey

import (
	"context"
	"time"
)

// FairSemaphore is a [PermitSemaphore] that grants its permits in the order of arrival, among all
// goroutines of all processes and not only among clients. Its permits have ids and leases in the same
// way, so the permits of a crashed process come back when their leases end. With Lease(NoExpiry) they
// stay acquired until somebody releases them by their ids. A waiter costs more: each one has a place in
// a queue in Redis.
//
// The order is the one in which waiters reached the server, whatever number of permits they want.
// While the first waiter wants more than are free, no waiter behind it gets any. So small requests
// do not starve a large one, and a large one keeps permits idle until there are enough. A request
// for more permits than there are in all blocks nobody while some are free: it gets its place back as
// soon as there are enough in all.
//
// A live waiter keeps its place however long it waits, and gets it back if Redis lost it. A waiter
// that is silent for Options.StaleWaiterTimeout, because its process was killed or cut off, is
// passed over. If many waiters are silent, that time passes once, not once for each. Where the
// server can tell that the process is gone, it passes the waiter over at once.
//
// It is wire-compatible with Redisson's RPermitExpirableSemaphore, and has a queue next to it. The
// clients of a PermitSemaphore of the same name wait in that queue too. Redisson shares the permits but
// does not know the queue; while its processes wait, each has its turn as often as a waiter. Set the
// permits once, by TrySetPermits. Any number of goroutines may share one FairSemaphore.
type FairSemaphore struct {
	pool PermitSemaphore
}

// NewFairSemaphore returns the fair semaphore with that name. It sends nothing. If braces enclose the
// whole name, as in {x}, each call returns ErrInvalid: the semaphore would share keys with x.
func (c *Client) NewFairSemaphore(name string) *FairSemaphore {
	s := &FairSemaphore{}
	s.pool.init(c, name, c.permitQueues().fair)
	s.pool.refuseWholeTag("a fair semaphore")
	return s
}

// Name returns the name as the program gave it.
func (s *FairSemaphore) Name() string { return s.pool.Name() }

// Client returns the client that made the semaphore.
func (s *FairSemaphore) Client() *Client { return s.pool.Client() }

// Acquire takes a permit in its turn. It waits until there is one and every earlier waiter, in any
// process, has received its permits or has left. It gives up when ctx ends or the time of [Wait] is
// over. The options are Wait, [Lease], [MaxHold], [AwaitSet] and [Note].
//
// The place in the queue is that of the first attempt that reached the server. The waiter keeps it
// for as long as this process is alive and reaches the server. A process that is silent for
// Options.StaleWaiterTimeout (5 s by default) is passed over until it reports again. An Acquire
// that gives up leaves the queue, in the background. [FairSemaphore.Waiters] shows the queue.
//
// The result and the errors are those of [PermitSemaphore.Acquire].
func (s *FairSemaphore) Acquire(ctx context.Context, options ...PermitOption) (*Permit, error) {
	return s.pool.Acquire(ctx, options...)
}

// TryAcquire takes a permit if one is free and nobody waits. It makes one attempt, and does not
// join the queue. ErrNotAcquired means that no permit is free, or that somebody waits. A dead
// waiter counts until it has been silent for Options.StaleWaiterTimeout. The other errors are those
// of Acquire. An attempt that meets a server in trouble is repeated for Options.RetryBudget.
func (s *FairSemaphore) TryAcquire(ctx context.Context, options ...TryPermitOption) (*Permit, error) {
	return s.pool.TryAcquire(ctx, options...)
}

// AcquireN takes n permits at once or none, as Acquire does, with its errors; n is 1,000 at most.
// While the call is first in the queue, no waiter behind it gets a permit. Each permit is released,
// renewed and lost on its own.
func (s *FairSemaphore) AcquireN(ctx context.Context, n int, options ...PermitOption) ([]*Permit, error) {
	return s.pool.AcquireN(ctx, n, options...)
}

// TryAcquireN is TryAcquire for n permits at once or none; n is 1,000 at most.
func (s *FairSemaphore) TryAcquireN(ctx context.Context, n int, options ...TryPermitOption) ([]*Permit, error) {
	return s.pool.TryAcquireN(ctx, n, options...)
}

// Do acquires a permit as Acquire does, calls fn with a context of the permit ([Permit.Context],
// [PermitFrom]), and releases the permit, also when fn panics. It returns the same errors as
// [PermitSemaphore.Do].
func (s *FairSemaphore) Do(ctx context.Context, fn func(context.Context) error, options ...PermitOption) error {
	return s.pool.Do(ctx, fn, options...)
}

// TrySetPermits sets the total number of permits of a semaphore that does not exist, and reports
// whether it did, as [PermitSemaphore.TrySetPermits] does. Callers that wait for that ([AwaitSet])
// are served in their order.
func (s *FairSemaphore) TrySetPermits(ctx context.Context, n int, options ...SetOption) (bool, error) {
	return s.pool.TrySetPermits(ctx, n, options...)
}

// SetPermits changes the total number of permits, or sets it, as [PermitSemaphore.SetPermits] does.
func (s *FairSemaphore) SetPermits(ctx context.Context, n int) error {
	return s.pool.SetPermits(ctx, n)
}

// AddPermits adds n permits, or takes them away if n is negative, as [PermitSemaphore.AddPermits] does.
func (s *FairSemaphore) AddPermits(ctx context.Context, n int) error {
	return s.pool.AddPermits(ctx, n)
}

// SetTTL makes the semaphore and its permits end in d, or never with NoExpiry, as
// [PermitSemaphore.SetTTL] does.
func (s *FairSemaphore) SetTTL(ctx context.Context, d time.Duration) (bool, error) {
	return s.pool.SetTTL(ctx, d)
}

// Delete removes the semaphore and reports whether it existed, as [PermitSemaphore.Delete] does.
// Its waiters get ErrNotSet; those with [AwaitSet] keep their places.
func (s *FairSemaphore) Delete(ctx context.Context) (bool, error) {
	return s.pool.Delete(ctx)
}

// Stats reports how many permits there are and how many are acquired, as [PermitSemaphore.Stats]
// does. Available may be more than 0 although somebody waits: the first waiter may want more.
func (s *FairSemaphore) Stats(ctx context.Context) (PermitStats, error) {
	return s.pool.Stats(ctx)
}

// Release gives permits back by their ids, also those of other processes, as [PermitSemaphore.Release] does.
func (s *FairSemaphore) Release(ctx context.Context, ids ...string) ([]PermitState, error) {
	return s.pool.Release(ctx, ids...)
}

// RemainingLease returns the time left of the lease of the permit with that id, as
// [PermitSemaphore.RemainingLease] does.
func (s *FairSemaphore) RemainingLease(ctx context.Context, id string) (time.Duration, error) {
	return s.pool.RemainingLease(ctx, id)
}

// SetLease makes the lease of the permit with that id end d from now, as [PermitSemaphore.SetLease]
// does.
func (s *FairSemaphore) SetLease(ctx context.Context, id string, d time.Duration) error {
	return s.pool.SetLease(ctx, id, d)
}

// Holders lists the permits that are held, as [PermitSemaphore.Holders] does.
func (s *FairSemaphore) Holders(ctx context.Context) ([]PermitHolder, error) {
	return s.pool.Holders(ctx)
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
	return s.pool.client.waiters(ctx, s.pool.keys, (*Client).permitWaiters)
}
