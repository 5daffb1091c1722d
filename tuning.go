package latchkey

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// Tuning are the settings of a [Client] that few programs need. The zero value is ready for use.
type Tuning struct {
	// Turn is how long this client may keep a lock that several of its goroutines want before it
	// lets other clients have it. Until then, an Unlock passes the lock in memory to the goroutine
	// that has waited longest, and sends nothing. Under an [RWLock], goroutines that want to read
	// join those that already read; the permits of a [Semaphore] are passed on in the same way.
	// Fenced and fair locks, and elections, are not passed on. With a negative Turn nothing is
	// passed on or shared. Default: 10 ms; at most 1 s.
	//
	// Meanwhile the server sees one owner. If a forced unlock, an eviction or a failover takes the
	// lock from it, the client notices at the next renewal, or at the end of the turn if that is
	// sooner. While goroutines wait for a hold of their own client, it is renewed, or checked if
	// its lease is fixed, at least once within PollCeiling.
	Turn time.Duration

	// PollCeiling bounds how long a waiter relies on messages before it queries the server again,
	// in case a message was lost. Default: 2 s, or half of Lease if that is shorter. It must be
	// shorter than Lease.
	PollCeiling time.Duration

	// StaleWaiterTimeout is how long a lock waits for a silent waiter. In the queue of a fair lock,
	// the waiter keeps its place for that time. When a release gives the lock to the next waiter,
	// it is that waiter's first lease, unless the waiter requested a shorter one. Default: 5 s; at
	// least 1 ms, at most an hour.
	StaleWaiterTimeout time.Duration

	// MaxInFlight bounds how many commands of this client wait for replies of one server at once,
	// or of one node of a cluster, so that a hung server cannot hold callers past their deadlines.
	// 120 more commands are reserved for renewals, releases and undo. Default: 512; at most 896.
	MaxInFlight int

	// AddressMapper maps an address (host:port) that a Sentinel, a cluster or the URL names to the
	// address to dial, for servers behind NAT, in containers, or at the end of a tunnel. It is for
	// [Connect] and [Open]. Certificates are checked against the host of the URL, or of the address
	// before it is mapped.
	AddressMapper func(address string) string

	// ClassicPubSub makes messages travel by the classic commands, for a fleet of Redisson that is
	// forced to use them. Default: by the sharded commands of Redis 7 in a cluster whose servers
	// know them, as Redisson does.
	ClassicPubSub bool

	// RedissonFairWait is the fairLockWaitTimeout of the Redisson processes that wait for the same
	// fair locks, so that waiters of this client keep their places among theirs. Without such
	// processes it has no effect. Default: 5 minutes, as Redisson's; at least 1 ms, at most a day.
	RedissonFairWait time.Duration
}

// complete sets fields that are zero to their defaults.
func (t *Tuning) complete(lease time.Duration) {
	setDefault(&t.Turn, 10*time.Millisecond)
	setDefault(&t.PollCeiling, min(2*time.Second, lease/2))
	setDefault(&t.StaleWaiterTimeout, 5*time.Second)
	setDefault(&t.MaxInFlight, 512)
	setDefault(&t.RedissonFairWait, 5*time.Minute)
}

// Upper bounds of [Tuning].
const (
	longestStale        = time.Hour
	longestRedissonWait = 24 * time.Hour
	longestTurn         = time.Second
	// maxInFlightLimit stays below the 1024 commands that the connection of a rueidis client queues
	// before it makes callers wait without looking at their contexts.
	maxInFlightLimit = 896
)

// check reports the first setting that is unusable.
func (t *Tuning) check(lease time.Duration) error {
	switch {
	case t.PollCeiling < time.Millisecond || t.PollCeiling >= lease:
		return fault.Invalid("Tuning.PollCeiling %v is not between 1ms and the lease %v", t.PollCeiling, lease)
	case t.StaleWaiterTimeout < time.Millisecond || t.StaleWaiterTimeout > longestStale:
		return fault.Invalid("Tuning.StaleWaiterTimeout %v is not between 1ms and %v", t.StaleWaiterTimeout, longestStale)
	case t.RedissonFairWait < time.Millisecond || t.RedissonFairWait > longestRedissonWait:
		return fault.Invalid("Tuning.RedissonFairWait %v is not between 1ms and %v", t.RedissonFairWait, longestRedissonWait)
	case t.Turn > longestTurn:
		return fault.Invalid("Tuning.Turn %v is longer than %v", t.Turn, longestTurn)
	case t.MaxInFlight < 1 || t.MaxInFlight > maxInFlightLimit:
		return fault.Invalid("Tuning.MaxInFlight %d is not between 1 and %d", t.MaxInFlight, maxInFlightLimit)
	}
	return nil
}
