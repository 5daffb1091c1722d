package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/primitive/group"
)

// NewRedLock returns the lock that is a majority of the given locks on independent servers: the
// algorithm of the Redis documentation
// (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/). With
// [Client.NewMutex] members it excludes redsync, node-redlock and others that follow it. It sends
// nothing. Every method returns ErrInvalid if there are no locks, if one cannot be used, if one is
// given twice, also inside another, or, detected when both have answered, if two are on one server.
// What differs from [NewMultiLock]:
//
//   - It is held while more than half of its members are, and survives the loss of the others. The
//     hold begins when enough of the leases is left ([Hold.ValidFor]). Missing members are tried
//     again at a third of the lease.
//   - Lock tries all members at once, each for RedLockOptions.MemberTimeout. Without a majority, it
//     releases what it got and tries again after a random pause of at most
//     RedLockOptions.RetryDelay. If three or more programs try at the same moment, each may have
//     got one member, and none a majority.
//   - Goroutines of one program that call Lock wait in one line, and only the first of them sends
//     requests; if the time of another ends, its error is the last one that the first got. Locks
//     are the same if they have the same members, of the same clients, in any order. If a majority
//     of the members are read sides, several goroutines hold it at once. Between programs there is
//     no order. TryLock does not wait in line.
//
// It is not consensus. A server that forgets the lock (a restart without persistence, a failover of
// a member) may help another majority. Clocks that run at different rates break the arithmetic.
// There are no fencing tokens across servers. See docs/reference/several.md.
func NewRedLock(options RedLockOptions, locks ...Locker) *MultiLock {
	setDefault(&options.RetryDelay, 200*time.Millisecond)
	return &MultiLock{group.NewRed(group.RedOptions(options), membersOf(locks))}
}

// RedLockOptions are the settings of [NewRedLock].
type RedLockOptions struct {
	// MemberTimeout is how long one member is tried. It should be short compared with the lease.
	// Default: a hundredth of the lease, but at least 50 ms and at most 500 ms.
	MemberTimeout time.Duration
	// RetryDelay is the longest pause before another round; half of it is random. It is also the
	// longest time that a program leaves to others after it has had the lock, if more of its
	// goroutines are in line. Default: 200 ms.
	RetryDelay time.Duration
}
