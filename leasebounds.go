package latchkey

import "github.com/latchkey-go/latchkey/internal/base/lease"

// MinLease is the shortest lease that is accepted; MaxLease the longest.
const (
	MinLease = lease.Shortest
	MaxLease = lease.Longest
)

// NoExpiry is the duration of something that does not end, in all arguments and results of this package. It is
// the longest [time.Duration], so it compares as longer than every lease and every TTL; MaxLease is the longest
// lease that ends. Do not add to it.
//
// As an argument, it is accepted by [Lease] for a permit, by [PermitSemaphore.SetLease], and by SetTTL of
// semaphores and latches. As a result, it means that the lease of a permit, or the key of a semaphore or latch,
// does not end. For a lock it means that the key is damaged, since every lock has a lease.
const NoExpiry = lease.NoExpiry
