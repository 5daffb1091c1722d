package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/primitive/group"
)

// RedLock is a majority of several locks on independent servers: the algorithm of the Redis documentation
// (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/). It is held while more than half
// of its members are, so it survives the loss of the others. With [Mutex] members it excludes redsync,
// node-redlock and other clients that follow that algorithm on the same keys.
//
// The hold begins when a majority is held and enough of the leases is left ([Hold.ValidFor]). While it lasts,
// missing members are tried again at a third of the lease.
//
// Goroutines of one program that want the same RedLock wait in one line, and only the first of them sends
// requests. Two RedLock values are the same if they have the same members, of the same clients, in any order.
// If a majority of the members are read sides, several goroutines hold it at once. Between programs there is
// no order.
//
// A RedLock is not consensus. A server that forgets the lock (a restart without persistence, a failover of a
// member) may help another majority. Clocks that run at different rates break the arithmetic. Paused code is
// not stopped, and there are no fencing tokens across servers. See docs/reference/several.md.
type RedLock struct{ groupLock }

// RedLockOptions are the settings of a [RedLock].
type RedLockOptions struct {
	// MemberTimeout is how long one member is tried. It should be short compared with the lease. Default: a
	// hundredth of the lease, but at least 50 ms and at most 500 ms.
	MemberTimeout time.Duration
	// RetryDelay is the longest pause before another round; half of it is random. It is also the longest time
	// that a program leaves to others after it has had the lock, if more of its goroutines are in line.
	// Default: 200 ms.
	RetryDelay time.Duration
}

var _ Locker = (*RedLock)(nil)

// NewRedLock returns the lock that is a majority of the given locks. It sends nothing. Every method returns an
// ErrInvalid if there are no locks, if one cannot be used, or if one is given twice, also inside another. The
// same holds for two locks on one server, which the client detects when both servers have answered.
func NewRedLock(options RedLockOptions, locks ...Locker) *RedLock {
	setDefault(&options.RetryDelay, 200*time.Millisecond)
	return &RedLock{groupLock{group.NewRed(group.RedOptions(options), membersOf(locks))}}
}

// Lock acquires a majority of the members. It waits behind the goroutines of this program that came before.
// Then it tries all members at once, each for RedLockOptions.MemberTimeout. Without a majority, it releases
// what it got and tries again after a random pause of at most RedLockOptions.RetryDelay. [AtLeast] and [As]
// are an ErrInvalid. If ctx carries a hold of a member ([Hold.Context]), that hold is re-entered. Everything
// else is as for [Lock.Lock], but for the errors.
//
// A nil error means that you hold a majority, for at least [Hold.ValidFor]. After any other error you hold
// nothing: members that were acquired, or may have been, are released, in the background if a server does
// not answer. The text of the error says how each member failed. The error matches one of
//
//   - ErrNotAcquired: others held so many members that there was no majority by the end of the wait
//   - ErrUnavailable: so many servers could not be reached, or did not answer, that there was no majority in
//     the last round. If requests were sent and not answered, the error also matches ErrUnknownOutcome: the
//     clients undo in the background what they may have acquired
//   - ErrClosed, ErrWrongKind, *rueidis.RedisError and others: so many members failed permanently that a
//     majority is impossible; returned at once
//   - ErrInvalid: the members or an option cannot be used; some cases are detected only when the servers
//     have answered
//
// If the time of a call ends while it waits in line, its error is the last one that the first in line got.
func (l *RedLock) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return asHold(l.inside().Acquire(ctx, "lock", true, settingsOf(options)))
}

// TryLock makes one attempt: it tries all members at once, each for RedLockOptions.MemberTimeout, and does not
// try again. It does not wait in line: the servers decide whether the lock is free, even while this program
// holds it. The options are [Lease], [MaxHold] and [Note].
//
// ErrNotAcquired means that others hold too many members; if three or more programs try at the same moment, each
// may have got one, and none a majority. ErrUnavailable means that too many servers could not
// be reached or did not answer. All other errors are as for Lock.
func (l *RedLock) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
	return asHold(l.inside().Acquire(ctx, "try lock", false, settingsOf(options)))
}
