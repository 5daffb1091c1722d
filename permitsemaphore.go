package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/engine/hold"
	"github.com/latchkey-go/latchkey/internal/primitive/semaphore"
)

// PermitSemaphore is a semaphore whose permits have ids and leases; on the wire it is Redisson's
// RPermitExpirableSemaphore. A permit is renewed for as long as its process lives, unless [Lease] fixes its
// lease, so the permits of a process that crashed become available again. That makes it suitable for worker
// pools. Any number of goroutines may share one PermitSemaphore.
//
// The number of permits must be set once, with TrySetPermits: until then acquisitions fail with ErrNotSet,
// unless [AwaitSet] makes them wait. The server's clock decides when a lease ends.
//
// Each client has one place in a queue on the server, and its goroutines wait for that place in line, first
// come, first served. So clients take turns, whatever their number of goroutines. Nobody overtakes: while a
// large request is first, smaller ones wait, however long that takes. A request for more permits than there
// are in all does not block others while some are free. A [FairSemaphore] of the same name shares the queue.
// Redisson does not know it; while its processes wait, each has its turn as often as a client.
//
// On the name of a [Semaphore] or a [CountDownLatch] every operation returns ErrWrongKind.
//
// Release by id, TrySetPermits, SetPermits and AddPermits count once, and return ErrUnknownOutcome, as
// described for [Semaphore].
type PermitSemaphore struct{ basePermitSemaphore }

// NewPermitSemaphore returns the semaphore with that name. It sends nothing.
func (c *Client) NewPermitSemaphore(name string) *PermitSemaphore {
	s := &PermitSemaphore{basePermitSemaphore{inside: semaphore.NewPool(c.engine(), name)}}
	s.count = &s.inside.Count
	return s
}

// basePermitSemaphore is what semaphores whose permits have ids have in common.
type basePermitSemaphore struct {
	baseSemaphore

	inside semaphore.Pool
}

// Acquire acquires a permit. It waits until ctx ends or the time of [Wait] is over. The other options are
// [Lease], [MaxHold], [AwaitSet] and [Note].
//
// A nil error means that you hold the permit, until you release it or it is lost ([Permit.Context]); with any
// other error you do not. Canceling ctx after Acquire returns does not affect the permit. The errors are
// those of [Semaphore.AcquireN].
func (s *basePermitSemaphore) Acquire(ctx context.Context, options ...PermitOption) (*Permit, error) {
	return onePermit(s.inside.Acquire(ctx, "acquire", true, 1, settingsOf(options)))
}

// TryAcquire acquires a permit if one is available and nobody waits, and does not wait itself: ErrNotAcquired
// says so. Everything else is as for [Semaphore.TryAcquireN].
func (s *basePermitSemaphore) TryAcquire(ctx context.Context, options ...TryPermitOption) (*Permit, error) {
	return onePermit(s.inside.Acquire(ctx, "try acquire", false, 1, settingsOf(options)))
}

// AcquireN acquires n permits at once or none, as Acquire does, with its errors; n is at most 1,000. Each
// permit is released, renewed and lost on its own.
func (s *basePermitSemaphore) AcquireN(ctx context.Context, n int, options ...PermitOption) ([]*Permit, error) {
	return allPermits(s.inside.Acquire(ctx, "acquire", true, n, settingsOf(options)))
}

// TryAcquireN is TryAcquire for n permits at once or none; n is at most 1,000.
func (s *basePermitSemaphore) TryAcquireN(ctx context.Context, n int, options ...TryPermitOption) ([]*Permit, error) {
	return allPermits(s.inside.Acquire(ctx, "try acquire", false, n, settingsOf(options)))
}

// Do acquires a permit as Acquire does, calls fn with a context of the permit ([Permit.Context], [PermitFrom]),
// and releases the permit: see [Lock.Do].
func (s *basePermitSemaphore) Do(ctx context.Context, fn func(context.Context) error, options ...PermitOption) error {
	p, err := s.Acquire(ctx, options...)
	if err != nil {
		return err
	}
	return p.handle().During(ctx, fn)
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

// PermitState says what happened to a permit in a release.
type PermitState int

const (
	// PermitUndecided means that no answer came: if the error matches ErrUnknownOutcome, the
	// release is repeated in the background.
	PermitUndecided PermitState = PermitState(semaphore.Undecided)
	// PermitReleased means that it was held until now.
	PermitReleased PermitState = PermitState(semaphore.Released)
	// PermitExpired means that its lease had ended: another process may have had it since.
	PermitExpired PermitState = PermitState(semaphore.Expired)
	// PermitUnknown means that there is no permit with that id, or no longer.
	PermitUnknown PermitState = PermitState(semaphore.Unknown)
)

// String returns the state as a word.
func (s PermitState) String() string {
	switch s {
	case PermitReleased:
		return "released"
	case PermitExpired:
		return "expired"
	case PermitUnknown:
		return "unknown"
	}
	return "undecided"
}

// Release releases permits by their ids, including permits of other processes, wakes waiters, and returns the
// state of each permit in the order of the ids. If another process renews a permit, it loses the permit and
// learns of that at its next renewal. Release works even if ctx has ended: the time is bounded by
// Options.RetryBudget instead, for each 100 ids.
//
// The error is nil if all were released. It matches ErrNotHeld if some are [PermitExpired] or [PermitUnknown],
// and ErrUnknownOutcome and ErrUnavailable if the server could not be reached or did not answer for some, which
// are [PermitUndecided] and are released in the background. It is ErrInvalid, and nothing was sent, if there is
// no id or one cannot be the id of a permit. ErrClosed, ErrWrongKind and a *rueidis.RedisError are possible for
// permits that are PermitUndecided and were not released.
func (s *basePermitSemaphore) Release(ctx context.Context, ids ...string) ([]PermitState, error) {
	found, err := s.inside.Release(ctx, ids)
	var states []PermitState
	for _, each := range found {
		states = append(states, PermitState(each))
	}
	return states, err
}

// RemainingLease returns the remaining lease of the permit with that id, NoExpiry if it does not end. It
// changes nothing; the answer may be out of date when it arrives.
//
// The error matches ErrNotHeld if nobody holds a permit with that id, ErrInvalid if it cannot
// be an id (nothing was sent), ErrWrongKind, ErrClosed, or ErrUnavailable if the server did
// not answer within Options.RetryBudget.
func (s *basePermitSemaphore) RemainingLease(ctx context.Context, id string) (time.Duration, error) {
	return s.inside.RemainingLease(ctx, id)
}

// SetLease makes the lease of the permit with that id d from now, longer or shorter, or without an end for
// NoExpiry. A permit of this client is no longer renewed, even after an error. Another process may still renew
// its own permit, which sets the lease to the length that it uses. ctx bounds the call.
//
// The error matches ErrNotHeld if nobody holds a permit with that id (and also ErrLost if this client held it),
// and ErrInvalid if it cannot be an id or d is not from 1 ms to 10 years (nothing was sent).
// ErrUnknownOutcome means that no answer came: the lease is unchanged or d, and does not change later. After
// ErrUnavailable, ErrClosed or ErrWrongKind it is unchanged.
func (s *basePermitSemaphore) SetLease(ctx context.Context, id string, d time.Duration) error {
	return s.inside.SetLease(ctx, id, d)
}

// PermitHolder is a permit that is held.
type PermitHolder struct {
	// ID is the id of the permit, as [Permit.ID] returns it. Anybody who has the id can release the permit.
	ID string
	// Label is the label of the client that holds the permit, and Note is the [Note] of the permit. Both are ""
	// if unknown: see [Holder].
	Label, Note string
	// Lease is the rest of the permit's lease, NoExpiry if it does not end.
	Lease time.Duration
}

// Holders lists the permits that are held, in the order in which their leases end; nil if there are none. It
// reads 500 permits at a time, and the labels and notes as [Client.Inspect] does. In a list of more than 500,
// permits that come or go during the call may be missing or listed twice. It changes nothing.
//
// The error matches ErrNotSet if the semaphore is not there, ErrUnavailable if the server did not answer within
// Options.RetryBudget or until ctx ended, ErrClosed, ErrWrongKind, ErrInvalid if the name cannot be used, or is a
// *rueidis.RedisError if the server refuses.
func (s *basePermitSemaphore) Holders(ctx context.Context) ([]PermitHolder, error) {
	holders, err := s.inside.Holders(ctx)
	var all []PermitHolder
	for _, h := range holders {
		all = append(all, PermitHolder(h))
	}
	return all, err
}
