package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/core"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/primitive/admin"
	"github.com/latchkey-go/latchkey/internal/primitive/group"
)

// Locker is the interface of all locks, and what [NewMultiLock] and [NewRedLock]
// take. Only the locks of this package, and types that embed one, are Lockers; such a type counts
// as the lock that it embeds. Each type documents its methods in full: see [Lock.Lock],
// [FairLock.Lock] and so on. Any number of goroutines may share one lock.
type Locker interface {
	// Name returns the name as the program gave it.
	Name() string
	// Lock acquires the lock, and waits while it is held.
	Lock(ctx context.Context, options ...LockOption) (*Hold, error)
	// TryLock makes one attempt to acquire the lock.
	TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error)
	// Do acquires the lock, calls fn, and releases the lock.
	Do(ctx context.Context, fn func(context.Context) error, options ...LockOption) error

	// HoldFrom returns the hold of the lock that ctx carries, or nil. It sends nothing.
	HoldFrom(ctx context.Context) *Hold

	self() group.Member // the lock itself, without a type that embeds it
}

// membersOf returns locks as members of several. An element is nil for a lock that is nil or embeds nil.
func membersOf(locks []Locker) []group.Member {
	members := make([]group.Member, len(locks))
	for i, l := range locks {
		members[i] = memberOf(l)
	}
	return members
}

// memberOf returns the lock that l is or embeds, or nil if that is nil. Only a call tells: it then panics.
func memberOf(l Locker) (m group.Member) {
	defer func() { _ = recover() }()
	return l.self()
}

// baseLock is what all locks of one key have in common.
type baseLock struct{ inside acquire.Lock }

func newBaseLock(c *core.Parts, s *acquire.Spec, name string) baseLock {
	return baseLock{s.With(c, name)}
}

// self returns nil for a lock that no constructor has made.
func (l *baseLock) self() group.Member {
	if l.inside.Spec == nil {
		return nil
	}
	return group.Single{Lock: &l.inside}
}

// Name returns the name as the program gave it.
func (l *baseLock) Name() string { return l.inside.Name() }

// Client returns the client that made the lock.
func (l *baseLock) Client() *Client { return (*Client)(l.inside.Client.Handle) }

// Lock acquires the lock, and waits while another owner holds it: see [Lock.Lock].
func (l *baseLock) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return asHold(l.inside.Acquire(ctx, "lock", true, usualSettings(options)))
}

// TryLock makes one attempt to acquire the lock, and does not wait: see [Lock.TryLock].
func (l *baseLock) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
	return asHold(l.inside.Acquire(ctx, "try lock", false, usualSettings(options)))
}

// Do acquires the lock as Lock does, calls fn, and releases the lock: see [Lock.Do].
func (l *baseLock) Do(ctx context.Context, fn func(context.Context) error, options ...LockOption) error {
	return acquire.Do(ctx, l.self(), fn, settingsOf(options))
}

// HoldFrom returns the hold of this lock that ctx carries, or nil: see [Lock.HoldFrom].
func (l *baseLock) HoldFrom(ctx context.Context) *Hold { return (*Hold)(l.inside.HandleFrom(ctx)) }

// Inspect returns who holds the lock, how often, and for how long, as [Client.Inspect] does. Of a read/write lock
// it shows both sides, and the side of each [Holder]; goroutines of one client that read along with each other are
// one holder. A free lock has the kind [KindNone] and no holders. The answer may be out of date when it arrives:
// don't branch on it, acquire the lock. [Hold.ValidFor] tells how long your own hold lasts, without a query.
//
// The error matches ErrUnavailable if the server could not be reached for Options.RetryBudget or until ctx ended,
// ErrClosed, ErrWrongKind if the key is another kind of object (the Object then says what it is), ErrInvalid if
// the name cannot be used, or is a *rueidis.RedisError if the server refuses.
func (l *baseLock) Inspect(ctx context.Context) (Object, error) {
	return asObject(l.self().Inspect(ctx))
}

// ForceUnlock takes the lock from its holder, and reports whether it was held: see [Lock.ForceUnlock].
func (l *baseLock) ForceUnlock(ctx context.Context) (bool, error) {
	return l.self().ForceUnlock(ctx, forceOne)
}

// forceOne takes a lock of one key from its holder.
func forceOne(ctx context.Context, p *ownership.Lock) (bool, error) {
	return admin.ForceUnlock(ctx, p.Client, p.Names, p.Spec)
}
