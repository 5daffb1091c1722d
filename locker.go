package latchkey

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Locker is what all locks have in common. Any number of goroutines may share one.
//
// The name is checked by every method before anything is sent; one that cannot be
// used is an ErrInvalid.
type Locker interface {
	// Name returns the name as the program gave it.
	Name() string

	// Lock acquires the lock, waiting until ctx ends or the time of [Wait] is over.
	// A nil error means that the lock is held; with any other error it is not, and
	// what may have been acquired all the same is undone in the background. While
	// the server cannot be reached, Lock goes on trying. A context that has ended
	// already gets an error though the lock be free.
	//
	// The error matches ErrNotAcquired, and the error of ctx, when the time ends;
	// ErrClosed when the client is closed; ErrWrongKind when the key is no lock of
	// this kind; ErrInvalid for bad arguments. A refusal of the server that waiting
	// cannot mend (no memory, no permission) is returned at once.
	Lock(ctx context.Context, options ...Option) (*Hold, error)

	// TryLock makes one attempt, or waits for as long as [Wait] says. It returns
	// ErrNotAcquired if the lock is busy, and otherwise the errors of Lock. An
	// attempt that meets a server in trouble is repeated for Options.RetryBudget.
	TryLock(ctx context.Context, options ...Option) (*Hold, error)

	// Do acquires as Lock does, calls fn with a context of the hold, and unlocks. It
	// returns the error of the acquisition, without calling fn; or the error of fn
	// joined with the loss of the hold, if it was lost while fn ran, and with the
	// error of Unlock. The lock is released also when fn panics.
	Do(ctx context.Context, fn func(context.Context) error, options ...Option) error

	// IsLocked reports whether anybody holds the lock.
	IsLocked(ctx context.Context) (bool, error)

	// RemainingTTL returns how long the lock stays held if nobody renews it: 0 if it
	// is free, NoExpiry if its key, against all rules, does not expire.
	RemainingTTL(ctx context.Context) (time.Duration, error)

	// Inspect tells who holds the lock, how often, and for how long.
	Inspect(ctx context.Context) (Inspection, error)

	// ForceUnlock frees the lock whoever holds it, wakes waiters, and reports whether
	// it was held. The holder learns of it at its next renewal. It removes exactly
	// the owner that it has found, so that a repetition, or a copy of the command
	// that arrives late, cannot hit a later hold, as long as no owner is used twice;
	// those of Redisson are, by a thread that locks again. If the answer was lost and
	// the lock found free, it reports true.
	ForceUnlock(ctx context.Context) (bool, error)
}

// primitive is the working part of every exclusive lock.
type primitive struct {
	keys
	client  *Client
	kind    *kind
	invalid error      // why the name cannot be used
	reader  *primitive // of the write side of a read/write lock: the other side
}

func newPrimitive(c *Client, k *kind, name string) *primitive {
	names, err := c.options.keysOf(name)
	return &primitive{keys: names, client: c, kind: k, invalid: err}
}

// Name is part of [Locker].
func (p *primitive) Name() string { return p.name }

// Lock is part of [Locker].
func (p *primitive) Lock(ctx context.Context, options ...Option) (*Hold, error) {
	return p.acquire(ctx, "lock", true, options)
}

// TryLock is part of [Locker].
func (p *primitive) TryLock(ctx context.Context, options ...Option) (*Hold, error) {
	return p.acquire(ctx, "try lock", false, options)
}

// Do is part of [Locker].
func (p *primitive) Do(ctx context.Context, fn func(context.Context) error, options ...Option) error {
	return do(ctx, p, fn, options)
}

// do is Do of every lock.
func do(ctx context.Context, lock Locker, fn func(context.Context) error, options []Option) (err error) {
	h, err := lock.Lock(ctx, options...)
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

// IsLocked is part of [Locker].
func (p *primitive) IsLocked(ctx context.Context) (bool, error) {
	i, err := p.Inspect(ctx)
	return err == nil && i.Locked(), err
}

// RemainingTTL is part of [Locker].
func (p *primitive) RemainingTTL(ctx context.Context) (time.Duration, error) {
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
func SyncLocker(ctx context.Context, lock Locker, options ...Option) sync.Locker {
	return &syncLocker{ctx: ctx, lock: lock, options: options}
}

type syncLocker struct {
	ctx     context.Context
	lock    Locker
	options []Option
	mu      sync.Mutex // held as long as the lock is, to guard hold
	hold    *Hold
}

// Lock acquires, or panics.
func (s *syncLocker) Lock() {
	s.mu.Lock()
	h, err := s.lock.Lock(s.ctx, s.options...)
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
