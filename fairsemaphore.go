package latchkey

import (
	"context"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// FairSemaphore is a [PermitSemaphore] whose permits go to those who ask in the order in which
// they asked, among all waiters of all processes. Its permits have ids and leases in the same
// way, so that those of a process that crashed come back by themselves; with
// Lease(NoExpiry) they stay acquired until somebody releases them by their ids. A waiter costs
// more: each one has a place in a queue in Redis.
//
// The order is that in which the server saw the waiters come, whatever number of permits they
// ask for: while the first of them waits for more than there are, nobody behind it gets any. So
// small requests do not starve a large one, and a large one keeps permits idle until there are
// enough. A request for more than there are in all keeps nobody waiting: it has its place again
// as soon as there are enough in all.
//
// A waiter that is alive keeps its place however long it waits, and gets it back if Redis lost
// it. A waiter that is silent for Options.StaleWaiterTimeout, because its process was killed or
// cut off, is passed over; if many are silent, that time passes once, not once for each. Where
// the server can tell that the process is gone, it is passed over at once.
//
// On the wire it is Redisson's RPermitExpirableSemaphore with a queue beside it. A
// PermitSemaphore of the same name, and Redisson, have the same permits, but do not know the
// queue: they take what is free when they come. Set the permits once, by TrySetPermits. Any
// number of goroutines may share one FairSemaphore.
type FairSemaphore struct {
	pool PermitSemaphore
}

// NewFairSemaphore returns the fair semaphore of that name. Nothing is sent. A name that is as a whole in
// braces, such as {x}, is an ErrInvalid in each call: it would share keys with x.
func (c *Client) NewFairSemaphore(name string) *FairSemaphore {
	s := &FairSemaphore{}
	s.pool.init(c, name, fairPermitSpec(c))
	s.pool.refuseWholeTag("a fair semaphore")
	return s
}

// Name returns the name as the program gave it.
func (s *FairSemaphore) Name() string { return s.pool.Name() }

// Acquire takes a permit in its turn: it waits until there is one and everybody who asked before,
// in any process, has had theirs or has left; until ctx ends or the time of [Wait] is over. The
// options are Wait, [Lease], [MaxHold] and [AwaitSet].
//
// The place in the queue is that of the first attempt that reached the server. It is kept for as
// long as this process is alive and reaches the server. A process that is silent for
// Options.StaleWaiterTimeout (5 s by default) is passed over until it is heard of again. An Acquire
// that gives up leaves the queue, in the background. [FairSemaphore.Waiters] shows the queue.
//
// What nil and an error mean, and what the error matches, is as for [PermitSemaphore.Acquire].
func (s *FairSemaphore) Acquire(ctx context.Context, options ...PermitOption) (*Permit, error) {
	return s.pool.Acquire(ctx, options...)
}

// TryAcquire takes a permit if there is one and nobody waits for any. It makes one attempt, and
// does not join the queue. ErrNotAcquired means that there is none, or that somebody waits; a
// waiter that has died counts until it has been silent for Options.StaleWaiterTimeout. The
// other errors are those of Acquire. An attempt that meets a server in trouble is repeated for
// Options.RetryBudget.
func (s *FairSemaphore) TryAcquire(ctx context.Context, options ...TryPermitOption) (*Permit, error) {
	return s.pool.TryAcquire(ctx, options...)
}

// AcquireN takes n permits at once or none, as Acquire does, with its errors; n is 1,000 at
// most. While it is the first in the queue, nobody behind it gets any. Each permit is released, renewed and
// lost for itself.
func (s *FairSemaphore) AcquireN(ctx context.Context, n int, options ...PermitOption) ([]*Permit, error) {
	return s.pool.AcquireN(ctx, n, options...)
}

// TryAcquireN is TryAcquire for n permits at once or none; n is 1,000 at most.
func (s *FairSemaphore) TryAcquireN(ctx context.Context, n int, options ...TryPermitOption) ([]*Permit, error) {
	return s.pool.TryAcquireN(ctx, n, options...)
}

// Do acquires a permit as Acquire does, calls fn with a context of the permit
// ([Permit.Context], [PermitFrom]), and releases the permit, also when fn panics. What it returns is as for
// [PermitSemaphore.Do].
func (s *FairSemaphore) Do(ctx context.Context, fn func(context.Context) error, options ...PermitOption) error {
	return s.pool.Do(ctx, fn, options...)
}

// TrySetPermits sets how many permits there are in all, of a semaphore that is not there, and
// reports whether it did, as [PermitSemaphore.TrySetPermits] does. Those who have been waiting for that are
// served in their order.
func (s *FairSemaphore) TrySetPermits(ctx context.Context, n int, options ...SetOption) (bool, error) {
	return s.pool.TrySetPermits(ctx, n, options...)
}

// SetPermits changes how many permits there are in all, or sets it, as [PermitSemaphore.SetPermits] does.
func (s *FairSemaphore) SetPermits(ctx context.Context, n int) error {
	return s.pool.SetPermits(ctx, n)
}

// AddPermits adds n permits, or takes them away if n is negative, as [PermitSemaphore.AddPermits] does.
func (s *FairSemaphore) AddPermits(ctx context.Context, n int) error {
	return s.pool.AddPermits(ctx, n)
}

// SetTTL makes the semaphore and its permits end in d, or never with NoExpiry, as [PermitSemaphore.SetTTL]
// does.
func (s *FairSemaphore) SetTTL(ctx context.Context, d time.Duration) (bool, error) {
	return s.pool.SetTTL(ctx, d)
}

// Delete removes the semaphore and reports whether it was there, as [PermitSemaphore.Delete] does. Its waiters
// get ErrNotSet; those who were told to wait for it keep their places.
func (s *FairSemaphore) Delete(ctx context.Context) (bool, error) {
	return s.pool.Delete(ctx)
}

// Stats reports how many permits there are and how many are acquired, as [PermitSemaphore.Stats]
// does. Available may be more than 0 although somebody waits: the first in the queue may want more.
func (s *FairSemaphore) Stats(ctx context.Context) (PermitStats, error) {
	return s.pool.Stats(ctx)
}

// Release gives permits back by their ids, also those of other processes, as [PermitSemaphore.Release] does.
func (s *FairSemaphore) Release(ctx context.Context, ids ...string) ([]PermitState, error) {
	return s.pool.Release(ctx, ids...)
}

// RemainingLease returns what is left of the lease of the permit with that id, as
// [PermitSemaphore.RemainingLease] does.
func (s *FairSemaphore) RemainingLease(ctx context.Context, id string) (time.Duration, error) {
	return s.pool.RemainingLease(ctx, id)
}

// SetLease makes the lease of the permit with that id d from now, as [PermitSemaphore.SetLease] does.
func (s *FairSemaphore) SetLease(ctx context.Context, id string, d time.Duration) error {
	return s.pool.SetLease(ctx, id, d)
}

// Holders lists the permits that are held, as [PermitSemaphore.Holders] does.
func (s *FairSemaphore) Holders(ctx context.Context) ([]PermitHolder, error) {
	return s.pool.Holders(ctx)
}

// Waiters lists those who wait for permits, in the order in which they will get them; nil if
// nobody waits. Owner is the id of the permit that a waiter will have, of the first one if it wants
// several. It asks the server 500 waiters at a time, and repeats a question for
// Options.RetryBudget at most. In a list of more than 500, waiters that come or go meanwhile
// may be missing or listed twice. It changes nothing.
//
// The error matches ErrInvalid for a bad name (nothing was sent), ErrWrongKind, ErrClosed, or
// ErrUnavailable if the server did not answer.
func (s *FairSemaphore) Waiters(ctx context.Context) ([]Waiter, error) {
	if err := s.pool.begin(); err != nil {
		return nil, fail("waiters", s.pool.name, err)
	}
	defer s.pool.client.working.Done()
	all, err := s.pool.client.permitWaiters(ctx, s.pool.keys)
	if err != nil {
		return nil, fail("waiters", s.pool.name, err)
	}
	s.pool.client.describeWaiters(ctx, all)
	return all, nil
}

// permitWaiters asks for those who wait for a fair semaphore.
func (c *Client) permitWaiters(ctx context.Context, k *keys) (all []Waiter, err error) {
	sent := k.fairPermitKeys()[2:4]
	for from := 0; ; from += waitersPage {
		args := []string{strconv.Itoa(from), strconv.Itoa(from + waitersPage - 1)}
		a, err := c.sender.Call(ctx, c.closing, fairsemWaiters, sent, args)
		if transport.HasCode(err, "WRONGTYPE") {
			err = c.wrongKind(ctx, k, KindSemaphore, err)
		}
		if err != nil {
			return nil, err
		}
		page, size, err := readWaiters(a.Message)
		if err != nil {
			return nil, err
		}
		for i, w := range page {
			page[i].Permits = len(groupOf(w.Owner.String()))
		}
		all = append(all, page...)
		if int64(from+waitersPage) >= size {
			return all, nil
		}
	}
}
