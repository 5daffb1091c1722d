package latchkey

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Locker is what all locks have in common, and what [NewMultiLock], [NewRedLock] and
// [SyncLocker] take. Only the locks of this package are Lockers. Each type documents its
// methods; any number of goroutines may share one lock.
type Locker interface {
	// Name returns the name as the program gave it.
	Name() string
	// Lock acquires the lock, and waits for it.
	Lock(ctx context.Context, options ...LockOption) (*Hold, error)
	// TryLock makes one attempt to acquire the lock.
	TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error)
	// Do acquires the lock, calls fn, and releases the lock.
	Do(ctx context.Context, fn func(context.Context) error, options ...LockOption) error

	acquire(ctx context.Context, verb string, waits bool, settings []setting) (*Hold, error)
}

// member is what a lock that is several needs of each.
type member interface {
	Locker
	Inspect(ctx context.Context) (Inspection, error)
	ForceUnlock(ctx context.Context) (bool, error)
}

// Lock acquires the lock. It waits until ctx ends or the time of [Wait] is over. The
// options are Wait, [Lease], [MaxHold] and [By].
//
// A nil error means that the lock is held; with any other error it is not. While the server
// cannot be reached, Lock goes on trying. A context that has already ended gets an error
// even if the lock is free. Cancelling ctx after Lock returns does not affect the hold.
//
// The error matches one of
//
//   - ErrNotAcquired: somebody else held the lock until ctx ended (the error then also
//     matches that of ctx) or the time of Wait was over
//   - ErrUnavailable: the server could not be asked until then. If a request was sent and not
//     answered, the error also matches ErrUnknownOutcome, and what may have been acquired
//     is undone in the background
//   - ErrClosed: the client is closed
//   - ErrWrongKind: the key is another kind of object, or data of an application
//   - ErrInvalid: the name or an option is unusable; nothing was sent
//   - *rueidis.RedisError: the server refuses for a reason that waiting cannot mend, such as
//     a missing permission or no memory
func (p *primitive) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return p.acquire(ctx, "lock", true, settingsOf(options))
}

// TryLock makes one attempt and does not wait. The options are [Lease], [MaxHold] and [By].
// ErrNotAcquired means that somebody else holds the lock; the other errors are those of
// Lock. An attempt that meets a server in trouble is repeated for Options.RetryBudget.
func (p *primitive) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
	return p.acquire(ctx, "try lock", false, settingsOf(options))
}

// Do acquires the lock as Lock does, calls fn with a context of the hold ([Hold.Context],
// [HoldFrom]), and releases the lock, also when fn panics.
//
// It returns the error of the acquisition, without calling fn; or the error of fn joined
// with the loss of the hold, if it was lost while fn ran, and with the error of Unlock.
func (p *primitive) Do(ctx context.Context, fn func(context.Context) error, options ...LockOption) error {
	return do(ctx, p, fn, settingsOf(options))
}

// do is Do of every lock.
func do(ctx context.Context, lock Locker, fn func(context.Context) error, settings []setting) (err error) {
	h, err := lock.acquire(ctx, "lock", true, settings)
	if err != nil {
		return err
	}
	defer func() {
		lost := h.Err()
		unlocked := h.Unlock(ctx)
		if lost != nil {
			unlocked = fail("do", lock.Name(), lost)
		}
		if unlocked != nil {
			err = errors.Join(err, unlocked)
		}
	}()
	return fn(h.Context(ctx))
}

// IsLocked reports whether anybody holds the lock. The answer may be out of date when it
// arrives: to do something only if the lock is free, acquire it.
func (p *primitive) IsLocked(ctx context.Context) (bool, error) {
	i, err := p.Inspect(ctx)
	return err == nil && i.Locked(), err
}

// RemainingLease returns how long the lock stays held if nobody renews it: 0 if it is free,
// NoExpiry if its key, against all rules, does not expire.
func (p *primitive) RemainingLease(ctx context.Context) (time.Duration, error) {
	i, err := p.Inspect(ctx)
	if err != nil {
		return 0, err
	}
	return i.TTL, nil
}

// SyncLocker makes a [sync.Locker] of a lock, for code that knows no errors. Its
// Lock waits until ctx ends; it panics when the lock is not acquired, and its Unlock
// panics when the hold had been lost or the server could not be reached. The result
// excludes goroutines that share it from each other, too.
func SyncLocker(ctx context.Context, lock Locker, options ...LockOption) sync.Locker {
	return &syncLocker{ctx: ctx, lock: lock, settings: settingsOf(options)}
}

type syncLocker struct {
	ctx      context.Context
	lock     Locker
	settings []setting
	mu       sync.Mutex // held as long as the lock is, to guard hold
	hold     *Hold
}

// Lock acquires, or panics.
func (s *syncLocker) Lock() {
	s.mu.Lock()
	h, err := s.lock.acquire(s.ctx, "lock", true, s.settings)
	if err != nil {
		s.mu.Unlock()
		panic(err)
	}
	s.hold = h
}

// Unlock releases, or panics.
func (s *syncLocker) Unlock() {
	defer s.mu.Unlock()
	if err := s.hold.Unlock(s.ctx); err != nil {
		panic(err)
	}
}
