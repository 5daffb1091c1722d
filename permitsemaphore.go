package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/primitive/admin"
	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
)

// PermitSemaphore is a semaphore whose permits have ids and leases; on the wire it is Redisson's
// RPermitExpirableSemaphore. A permit is renewed for as long as its process lives, unless [Lease]
// fixes its lease, so the permits of a process that crashed become available again. Any number of
// goroutines may share one PermitSemaphore.
//
// Set the permits once, with TrySetPermits or SetPermits. Until then acquisitions fail with
// ErrNotSet, unless [AwaitSet] makes them wait. On the name of a [Semaphore] or a [CountDownLatch]
// every operation returns ErrWrongKind.
//
// Release by id, TrySetPermits, SetPermits and AddPermits count once, and return ErrUnknownOutcome,
// as described for Semaphore.
type PermitSemaphore struct{ inside semaphore.Pool }

// NewPermitSemaphore returns the semaphore with that name. It sends nothing.
//
// Each client has one place in a queue on the server, and its goroutines wait for that place in
// line, first come, first served. So clients take turns, whatever their number of goroutines.
// Nobody overtakes: while a large request is first, smaller ones wait, however long that takes. A
// request for more permits than there are in all does not block others while some are free.
// [Client.NewFairSemaphore] shares the queue. While processes of Redisson wait, each has its turn
// as often as a client.
func (c *Client) NewPermitSemaphore(name string) *PermitSemaphore {
	return &PermitSemaphore{semaphore.NewPool(c.engine(), name)}
}

// Name returns the name as the program gave it.
func (s *PermitSemaphore) Name() string { return s.inside.Name() }

// Kind returns [KindPermit] or [KindFairPermit].
func (s *PermitSemaphore) Kind() Kind { return Kind(s.inside.Permits.Spec.Kind) }

// Acquire acquires a permit. It waits until ctx ends or the time of [Wait] is over. The other
// options are [Lease], [MaxHold], [AwaitSet] and [Note].
//
// A nil error means that you hold the permit, until you release it or it is lost
// ([Permit.Context]); with any other error you do not. Canceling ctx after Acquire returns does not
// affect the permit. The errors are those of [Semaphore.AcquireN].
func (s *PermitSemaphore) Acquire(ctx context.Context, options ...PermitOption) (*Permit, error) {
	return onePermit(s.inside.Acquire(ctx, "acquire", true, 1, settingsOf(options)))
}

// TryAcquire acquires a permit if one is available and nobody waits, and does not wait itself:
// ErrNotAcquired says so. Everything else is as for [Semaphore.TryAcquireN].
func (s *PermitSemaphore) TryAcquire(ctx context.Context, options ...TryPermitOption) (*Permit, error) {
	return onePermit(s.inside.Acquire(ctx, "try acquire", false, 1, settingsOf(options)))
}

// AcquireN acquires n permits at once or none, as Acquire does, with its errors; n is at most
// 1,000. Each permit is released, renewed and lost on its own.
func (s *PermitSemaphore) AcquireN(ctx context.Context, n int, options ...PermitOption) ([]*Permit, error) {
	return allPermits(s.inside.Acquire(ctx, "acquire", true, n, settingsOf(options)))
}

// TryAcquireN is TryAcquire for n permits at once or none; n is at most 1,000.
func (s *PermitSemaphore) TryAcquireN(ctx context.Context, n int, options ...TryPermitOption) ([]*Permit, error) {
	return allPermits(s.inside.Acquire(ctx, "try acquire", false, n, settingsOf(options)))
}

// Do acquires a permit as Acquire does, calls fn with a context of the permit ([Permit.Context],
// [PermitFrom]), and releases the permit: see [Lock.Do].
func (s *PermitSemaphore) Do(ctx context.Context, fn func(context.Context) error, options ...PermitOption) error {
	return s.inside.Do(ctx, fn, settingsOf(options))
}

// onePermit returns what Acquire returns for what the inside has acquired.
func onePermit(acquired []*hold.Handle, err error) (*Permit, error) {
	if err != nil {
		return nil, err
	}
	return (*Permit)(acquired[0]), nil
}

// allPermits is onePermit for AcquireN.
func allPermits(acquired []*hold.Handle, err error) ([]*Permit, error) {
	if err != nil {
		return nil, err
	}
	permits := make([]*Permit, len(acquired))
	for i, h := range acquired {
		permits[i] = (*Permit)(h)
	}
	return permits, nil
}

// Release releases permits by their ids, including permits of other processes, wakes waiters, and
// returns the state of each permit in the order of the ids. A process that renews such a permit
// learns of that at its next renewal. Release works even if ctx has ended: the time is bounded by
// Options.RetryBudget instead, for each 100 ids.
//
// The error is nil if all were released. It matches ErrNotHeld if some are [PermitExpired] or
// [PermitUnknown], and ErrUnknownOutcome and ErrUnavailable if there was no answer for some, which
// are [PermitUndecided] and are released in the background. It is ErrInvalid, and nothing was sent,
// if there is no id or one cannot be the id of a permit. After ErrClosed, ErrWrongKind or a
// *rueidis.RedisError some are PermitUndecided and were not released.
func (s *PermitSemaphore) Release(ctx context.Context, ids ...string) ([]PermitState, error) {
	return asPermitStates(s.inside.Release(ctx, ids))
}

// RemainingLease returns the remaining lease of the permit with that id, NoExpiry if it does not
// end. The error matches ErrNotHeld if nobody holds a permit with that id, ErrInvalid if it cannot
// be an id (nothing was sent), ErrWrongKind, ErrClosed, or ErrUnavailable if the server did not
// answer within Options.RetryBudget.
func (s *PermitSemaphore) RemainingLease(ctx context.Context, id string) (time.Duration, error) {
	return s.inside.RemainingLease(ctx, id)
}

// SetLease makes the lease of the permit with that id d from now, longer or shorter, from 1 ms to
// 10 years, or without an end for NoExpiry. A permit of this client is no longer renewed, even
// after an error. Another process may still renew its own permit, which sets the lease to the
// length that it uses. ctx bounds the call.
//
// The errors are those of RemainingLease. ErrLost matches besides ErrNotHeld if this client held
// the permit. ErrUnknownOutcome means that no answer came: the lease is unchanged or d, and does
// not change later. After any other error it is unchanged.
func (s *PermitSemaphore) SetLease(ctx context.Context, id string, d time.Duration) error {
	return s.inside.SetLease(ctx, id, d)
}

// Holders lists the permits that are held, in the order in which their leases end; nil if there are
// none. In a list of more than 500, permits that come or go during the call may be missing or
// listed twice. Labels and notes are read as by [Client.Inspect], and the errors are those of
// [Lock.Inspect], and ErrNotSet if the semaphore is not there.
func (s *PermitSemaphore) Holders(ctx context.Context) ([]PermitHolder, error) {
	return asPermitHolders(s.inside.Holders(ctx))
}

// Waiters lists the waiters for permits, in the order in which they will get them: see
// [Client.Waiters]. [Waiter.Owner] is the id of the permit that the waiter will have, or of the
// first one if it wants several.
func (s *PermitSemaphore) Waiters(ctx context.Context) ([]Waiter, error) {
	return asWaiters(admin.ListWaiters(ctx, s.inside.Client, s.inside.Names, admin.PermitWaiters))
}

// Inspect returns how many permits there are and how many are acquired: see [Semaphore.Inspect].
func (s *PermitSemaphore) Inspect(ctx context.Context) (Object, error) {
	return asObject(s.inside.Inspect(ctx))
}

// TrySetPermits sets the total number of permits of a semaphore that does not exist yet: see
// [Semaphore.TrySetPermits]. With [TTL] the permits end with the semaphore, and their holders know
// that.
func (s *PermitSemaphore) TrySetPermits(ctx context.Context, n int, options ...SetOption) (bool, error) {
	return s.inside.TrySet(ctx, n, settingsOf(options))
}

// SetPermits changes the total number of permits: see [Semaphore.SetPermits]. The total is always
// known.
func (s *PermitSemaphore) SetPermits(ctx context.Context, n int) error { return s.inside.Set(ctx, n) }

// AddPermits adds n permits, or removes them if n is negative: see [Semaphore.AddPermits]. The
// total is always known.
func (s *PermitSemaphore) AddPermits(ctx context.Context, n int) error { return s.inside.Add(ctx, n) }

// SetTTL makes the semaphore end in d: see [Semaphore.SetTTL]. Its permits end with it; until then
// their leases stay as they are. Their holders learn of that at their next renewal, a third of the
// lease later at most, and those of permits that are not renewed do not: let d be longer.
func (s *PermitSemaphore) SetTTL(ctx context.Context, d time.Duration) (bool, error) {
	return s.inside.SetTTL(ctx, d)
}

// Delete removes the semaphore: see [Semaphore.Delete]. Its permits are lost; their holders learn
// of that at the next renewal.
func (s *PermitSemaphore) Delete(ctx context.Context) (bool, error) { return s.inside.Delete(ctx) }
