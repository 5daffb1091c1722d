package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/primitive/admin"
	"github.com/latchkey-go/latchkey/internal/primitive/group"
)

// Locker is the interface of [Lock] and [MultiLock], and what [NewMultiLock] and [NewRedLock] take.
// Only these and types that embed a Locker implement it; such a type counts as the lock that it
// embeds. Embed latchkey.Locker, not *latchkey.Lock, whose method Lock the field Lock would hide.
type Locker interface {
	// Name returns the name as the program gave it.
	Name() string
	// Lock acquires the lock, and waits while it is held: see [Lock.Lock].
	Lock(ctx context.Context, options ...LockOption) (*Hold, error)
	// TryLock makes one attempt to acquire the lock.
	TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error)
	// Do acquires the lock, calls fn, and releases the lock.
	Do(ctx context.Context, fn func(context.Context) error, options ...LockOption) error
	// HoldFrom returns the hold of the lock that ctx carries, or nil.
	HoldFrom(ctx context.Context) *Hold

	self() group.Member // the lock itself, without a type that embeds it
}

// membersOf returns locks as members of several. An element is nil for a lock that is nil or embeds
// nil.
func membersOf(locks []Locker) []group.Member {
	members := make([]group.Member, len(locks))
	for i, l := range locks {
		members[i] = memberOf(l)
	}
	return members
}

// memberOf returns the lock that l is or embeds, or nil if that is nil. Only a call tells: it then
// panics.
func memberOf(l Locker) (m group.Member) {
	defer func() { _ = recover() }()
	return l.self()
}

// forceOne takes a lock of one key from its holder.
func forceOne(ctx context.Context, p *ownership.Lock) (bool, error) {
	return admin.ForceUnlock(ctx, p.Client, p.Names, p.Spec)
}
