package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
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
// whole, and [By] is not allowed. [Lease] and [MaxHold] begin when the last member is acquired.
// Until then the client renews the others, so a call may wait for a member longer than they allow.
// A process that dies while it waits keeps its members no longer than that lease.
type MultiLock struct{ compositeLock }

// NewMultiLock returns the lock that consists of all the given locks. A lock that is given twice
// counts once. It sends nothing. Every method returns ErrInvalid if there is no lock, if one cannot
// be used, or if two different ones share a key (the sides of a read/write lock, a RedLock and its
// member, two RedLocks over one lock).
func NewMultiLock(locks ...Locker) *MultiLock {
	members, err := membersOf(locks)
	if err == nil {
		members, err = withoutDuplicates(inOrder(flatten(members)), false)
	}
	l := &MultiLock{compositeLock{kind: keyspace.KindMulti, members: members, need: len(members), invalid: err, pause: deadlockPause}}
	l.round = l.acquireAll
	return l
}

var _ Locker = (*MultiLock)(nil)

// Lock acquires all members, or none. It waits while another owner holds one of the members, until
// ctx ends or the time of [Wait] is over; with neither, it waits without limit. While it waits for a
// member it holds those before it, and no others.
//
// The other options are [Lease], [MaxHold] and [Note]. They apply to the whole and begin when the last
// member is held. Without Lease, every member is renewed until Unlock. [By] is an ErrInvalid. If
// ctx carries a hold of a member ([Hold.Context]), Lock re-enters that member. Canceling ctx after
// Lock returns does not affect the hold.
//
// A nil error means that you hold every member. After any other error nothing is held: Lock
// releases what it acquired, in the background once the time is over. The text names the member at
// fault. The error matches one of
//
//   - ErrNotAcquired: another owner held a member until ctx ended or the time of Wait was over
//   - ErrUnavailable: the server of a member could not be reached or did not answer by the end of
//     the wait
//   - ErrUnknownOutcome, besides one of these two: a request was sent and not answered, perhaps an
//     earlier one; the client undoes in the background what it may have acquired
//   - ErrNotReplicated, ErrLost, ErrClosed, ErrWrongKind, ErrUpgrade: one member failed in that
//     way, as its own Lock does; the call does not wait for the others
//   - ErrInvalid: the members or an option cannot be used; nothing was sent
//   - *rueidis.RedisError: a server refuses for a reason that waiting does not change
//
// If ctx ended during the call, the error also matches that of ctx. The end of Wait matches no
// context error. If ctx had ended before the call, nothing was sent, and the error matches only
// that of ctx.
func (l *MultiLock) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return asHold(l.acquire(ctx, "lock", true, settingsOf(options)))
}

// TryLock makes one attempt to acquire each member, one after the other in their order, and does not
// wait. The options are [Lease], [MaxHold] and [Note]. If several programs try groups that overlap at
// the same moment, and all members are free, at least one group is acquired, unless members with the
// same key on different servers are given in different orders.
//
// ErrNotAcquired means that another owner holds a member; those before it have been released again,
// and those after it were not tried. ErrUnavailable means that the server of a member could not be
// reached: an attempt that meets a server in trouble is repeated until it is answered, ctx ends, or
// Options.RetryBudget of that client is spent. All other errors are as for Lock.
func (l *MultiLock) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
	return asHold(l.acquire(ctx, "try lock", false, settingsOf(options)))
}
