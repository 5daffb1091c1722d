// Package latchkey gives Go programs the synchronizers of java.util.concurrent, across processes:
// every process that reaches the same Redis or Valkey server can share them. Keys, channels and
// messages are those of Redisson, so a Go service and a Java service can hold, wait for and release
// the same lock.
//
// # Locks and holds
//
// A lock is a name with settings and no state: share one value between any number of goroutines. An
// acquisition returns a [Hold], and the hold is the right to release. Do acquires, runs a function
// under the hold, and releases:
//
//	client, err := latchkey.Connect(ctx, "redis://localhost:6379", latchkey.Options{})
//	if err != nil {
//		return err
//	}
//	defer client.Close(ctx)
//
//	orders := client.NewLock("orders:42")
//	err = orders.Do(ctx, func(ctx context.Context) error {
//		return charge(ctx, order) // ctx ends if the lock is lost
//	}, latchkey.Wait(2*time.Second))
//	switch {
//	case errors.Is(err, latchkey.ErrNotAcquired):
//		// somebody else has the lock: 409 Conflict, try later
//	case errors.Is(err, latchkey.ErrUnavailable):
//		// the server could not be reached: 503 Service Unavailable
//	case errors.Is(err, latchkey.ErrLost):
//		// the lock was lost while charge ran: check its work
//	}
//
// All locks of one key are of the type [Lock]: [Client.NewLock], NewMutex, NewFencedLock,
// NewFairLock, NewSpinLock, and the sides of [Client.NewRWLock]. Several of them are a [MultiLock].
//
// # Ownership
//
// Every acquisition gets an owner of its own, so one shared lock value excludes goroutines from
// each other as a mutex does. Re-entry is explicit: an acquisition re-enters if its context comes
// from [Hold.Context] of the same lock, or if it names the owner with [As] or [WithOwner]. Any
// goroutine may release a hold.
//
// # Loss
//
// A hold is a lease that the client renews. When the client can no longer be sure that the lease is
// valid, the contexts made by [Hold.Context] end with the cause [ErrLost], [Hold.Lost] closes, and
// [Hold.Unlock] returns ErrLost. This happens before the server gives the lock to anyone else, even
// if the server is silent. The exceptions are a failover that lost the lock, a forced unlock, and
// any other removal of the key from outside: the next renewal detects them.
// docs/explain/guarantees.md says what no lock in Redis can promise. A fencing token
// ([Client.NewFencedLock]) closes the gap that remains.
//
// # Options
//
// The Try form of a call takes no Wait and no AwaitSet:
//
//	Lock, Do                               Wait, Lease, MaxHold, Note, AtLeast, As
//	Lock, Do of a reader                   Wait, Lease, MaxHold, Note, As
//	Lock, Do of a MultiLock; Campaign, Run Wait, Lease, MaxHold, Note
//	PermitSemaphore.Acquire, AcquireN, Do  Wait, Lease, MaxHold, Note, AwaitSet
//	Semaphore.Acquire, AcquireN            Wait, AwaitSet
//	CountDownLatch.Await                   Wait, AwaitSet, UnsetIsOpen
//	Barrier.Await, Do                      Wait
//	TrySetPermits, TrySetCount             TTL
//	Client.NewFairLock                     Fenced
//
// # Once
//
// A [Once] is work that succeeds once in all processes together, such as a migration or a request
// with an idempotency key. Others wait for its result.
//
// docs/README.md lists the guides.
package latchkey
