package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/primitive/group"
)

// MultiLock is several locks that are acquired together: all of them ([NewMultiLock]), or a
// majority ([NewRedLock]). They may be of any kind, may belong to different clients and servers,
// and may be MultiLocks themselves.
//
// The options of an acquisition apply to each member, but [Wait] and the context apply to the
// whole. [AtLeast] and [As] are an ErrInvalid.
type MultiLock struct{ made *group.Lock }

var _ Locker = (*MultiLock)(nil)

// NewMultiLock returns the lock that consists of all the given locks. It sends nothing. A lock that
// is given twice counts once. Every method returns ErrInvalid if there is no lock, if one cannot be
// used, or if two different ones share a key (the sides of a read/write lock, a majority and its
// member, two majorities over one lock).
//
// Every program waits for members in the same order: by key, then by kind. A group that waits for a
// member holds only members before it, so groups that overlap cannot deadlock. Give members with
// the same key on different servers in the same order everywhere: a call waits for one of those for
// about a second, then releases everything, and tries again after a short pause.
//
// The hold is lost when one member is. Unlock releases all members, even if some releases fail.
//
// [Lease] and [MaxHold] begin when the last member is acquired. Until then the client renews the
// others, so a call may wait for a member longer than they allow. A process that dies while it
// waits keeps its members no longer than that lease.
//
// TryLock tries one member after the other. If programs that give members in the same order try
// groups that overlap at the same moment, and all members are free, at least one group is acquired.
func NewMultiLock(locks ...Locker) *MultiLock {
	return &MultiLock{group.NewMulti(membersOf(locks))}
}

// inside returns the lock that a constructor made, or else one without members.
func (l *MultiLock) inside() *group.Lock {
	if l.made == nil {
		return &group.Lock{}
	}
	return l.made
}

func (l *MultiLock) self() group.Member { return l.inside() }

// Name returns the kind and the names of the members, such as "multi(a, b)".
func (l *MultiLock) Name() string { return l.inside().Name() }

// Lock acquires all members or a majority, or none. It waits while others hold them. If ctx carries
// a hold of a member ([Hold.Context]), Lock re-enters that member. Everything else is as for
// [Lock.Lock], but for the errors.
//
// After any error nothing is held: Lock releases what it acquired, in the background if need be.
// The text names the members at fault. The error matches one of
//
//   - ErrNotAcquired: others held a member, or too many of a majority, until the end of the wait
//   - ErrUnavailable: the server of a member, or too many for a majority, could not be reached or
//     did not answer by then
//   - ErrUnknownOutcome, besides one of these two: a request was sent and not answered; the clients
//     undo in the background what they may have acquired
//   - ErrNotReplicated, ErrLost, ErrClosed, ErrWrongKind, ErrUpgrade, *rueidis.RedisError: a
//     member, or too many for a majority, failed in that way; the call does not wait for the others
//   - ErrInvalid: the members or an option cannot be used
func (l *MultiLock) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return asHold(l.inside().Acquire(ctx, "lock", true, settingsOf(options)))
}

// TryLock makes one attempt to acquire each member, and does not wait. ErrNotAcquired means that
// others hold a member, or too many of a majority; what was acquired has been released again. All
// other errors are as for Lock. The attempt of a member is as for [Lock.TryLock], of a majority
// within RedLockOptions.MemberTimeout.
func (l *MultiLock) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
	return asHold(l.inside().Acquire(ctx, "try lock", false, settingsOf(options)))
}

// Do acquires the lock as Lock does, calls fn, and releases the lock: see [Lock.Do].
func (l *MultiLock) Do(ctx context.Context, fn func(context.Context) error, options ...LockOption) error {
	return acquire.Do(ctx, l.inside(), fn, settingsOf(options))
}

// HoldFrom returns the hold of this lock that ctx carries: that of all members together; see
// [Lock.HoldFrom]. A lock with the same members, of the same clients, counts as this one. Each
// member has a HoldFrom of its own.
func (l *MultiLock) HoldFrom(ctx context.Context) *Hold { return (*Hold)(l.inside().HandleFrom(ctx)) }

// Inspect lists the holders of all members together. Kind is [KindMulti] or [KindRed] if enough
// members are held, all or a majority, and [KindNone] otherwise. TTL is how long enough members
// stay held if nobody renews them. If the answer depends on members that could not be inspected,
// the error joins theirs, which are those of [Lock.Inspect].
func (l *MultiLock) Inspect(ctx context.Context) (Object, error) {
	return asObject(l.inside().Inspect(ctx))
}

// ForceUnlock takes every member from its holder, as the ForceUnlock of the member does, and
// reports whether any was held. It tries every member; the error joins those of the members that
// failed.
func (l *MultiLock) ForceUnlock(ctx context.Context) (bool, error) {
	return l.inside().ForceUnlock(ctx, forceOne)
}
