package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/primitive/group"
)

// MultiLock is several locks that are acquired together, all or none. They may be of any kind, may
// belong to different clients and servers, and may be MultiLocks or RedLocks themselves. A
// MultiLock stores nothing of its own, as Redisson's RedissonMultiLock does not.
//
// Every program waits for members in the same order: by key, then by kind. A group that waits for a
// member holds only members before it, so groups that overlap cannot deadlock. Members with the
// same key on different servers keep the order in which you give them: give them in the same order
// everywhere. A call waits for one of those for about a second, then releases everything, and tries
// again after a short pause.
//
// The hold is lost when one member is. Unlock releases all members, even if some releases fail. A
// failover that loses one member loses the whole: see [RedLock] for the opposite.
//
// The options of an acquisition apply to each member, but [Wait] and the context apply to the
// whole, and [As] is not allowed. [Lease] and [MaxHold] begin when the last member is acquired.
// Until then the client renews the others, so a call may wait for a member longer than they allow.
// A process that dies while it waits keeps its members no longer than that lease.
type MultiLock struct{ groupLock }

// NewMultiLock returns the lock that consists of all the given locks. A lock that is given twice
// counts once. It sends nothing. Every method returns ErrInvalid if there is no lock, if one cannot
// be used, or if two different ones share a key (the sides of a read/write lock, a RedLock and its
// member, two RedLocks over one lock).
func NewMultiLock(locks ...Locker) *MultiLock {
	return &MultiLock{groupLock{group.NewMulti(membersOf(locks))}}
}

var _ Locker = (*MultiLock)(nil)

// Lock acquires all members, or none. It waits while another owner holds one of the members. While it waits
// for a member it holds those before it, and no others. [AtLeast] and [As] are an ErrInvalid. If ctx carries
// a hold of a member ([Hold.Context]), Lock re-enters that member. Everything else is as for [Lock.Lock],
// but for the errors.
//
// After any error nothing is held: Lock releases what it acquired, in the background once the time is over.
// The text names the member at fault. The error matches one of
//
//   - ErrNotAcquired: another owner held a member until the end of the wait
//   - ErrUnavailable: the server of a member could not be reached or did not answer by then
//   - ErrUnknownOutcome, besides one of these two: a request was sent and not answered, perhaps an earlier
//     one; the client undoes in the background what it may have acquired
//   - ErrNotReplicated, ErrLost, ErrClosed, ErrWrongKind, ErrUpgrade: one member failed in that way, as its
//     own Lock does; the call does not wait for the others
//   - ErrInvalid: the members or an option cannot be used; nothing was sent
//   - *rueidis.RedisError: a server refuses for a reason that waiting does not change
func (l *MultiLock) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return asHold(l.inside().Acquire(ctx, "lock", true, settingsOf(options)))
}

// TryLock makes one attempt to acquire each member, one after the other in their order, and does not wait.
// The options are [Lease], [MaxHold] and [Note]. ErrNotAcquired means that another owner holds a member;
// those before it have been released again, and those after it were not tried. All other errors are as for
// Lock. An attempt that meets a server in trouble is repeated as for [Lock.TryLock].
//
// If several programs try groups that overlap at the same moment, and all members are free, at least one
// group is acquired, unless members with the same key on different servers are given in different orders.
func (l *MultiLock) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
	return asHold(l.inside().Acquire(ctx, "try lock", false, settingsOf(options)))
}

// groupLock is what a MultiLock and a RedLock have in common.
type groupLock struct{ made *group.Lock }

// inside returns the lock that a constructor made, or else one without members.
func (l *groupLock) inside() *group.Lock {
	if l.made == nil {
		return &group.Lock{}
	}
	return l.made
}

func (l *groupLock) self() group.Member { return l.inside() }

// Name returns the kind and the names of the members, such as "multi(a, b)".
func (l *groupLock) Name() string { return l.inside().Name() }

// Do acquires the lock as Lock does, calls fn, and releases the lock: see [Lock.Do]. An acquisition of a
// member under the context of fn is a re-entry.
func (l *groupLock) Do(ctx context.Context, fn func(context.Context) error, options ...LockOption) error {
	return acquire.Do(ctx, l.inside(), fn, settingsOf(options))
}

// HoldFrom returns the hold of this lock that ctx carries, as [Lock.HoldFrom] does: that of all
// members together. A lock with the same members, of the same clients, counts as this one. For the
// hold of one member use the HoldFrom of that member. HoldFrom sends nothing to the servers.
func (l *groupLock) HoldFrom(ctx context.Context) *Hold { return (*Hold)(l.inside().HandleFrom(ctx)) }

// Inspect queries the servers of all members, and lists the holders of all members together. Kind
// is [KindMulti] or [KindRed] if enough members are held, all of a [MultiLock] or more than half
// of a [RedLock], and [KindNone] otherwise. TTL is how long enough members stay held if nobody
// renews them. Queued and Listeners are 0. The answer may be out of date when it arrives.
//
// If the answer depends on members that could not be inspected, or if too few could be, the error
// joins theirs. The error matches ErrUnavailable if their servers could not be reached within the
// RetryBudget of their clients or before ctx ended, ErrClosed, ErrWrongKind, ErrInvalid if the
// members are unusable, or is a *rueidis.RedisError if a server refuses.
func (l *groupLock) Inspect(ctx context.Context) (Object, error) {
	return asObject(l.inside().Inspect(ctx))
}

// ForceUnlock takes every member from its holder, as the ForceUnlock of the member does, and reports whether
// any was held. It tries every member; the error joins those of the members that failed.
func (l *groupLock) ForceUnlock(ctx context.Context) (bool, error) {
	return l.inside().ForceUnlock(ctx, forceOne)
}
