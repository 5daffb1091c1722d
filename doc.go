// Package latchkey gives Go programs the synchronizers of
// java.util.concurrent, shared by every process that reaches the same Redis or
// Valkey server. Keys, channels and messages are those of Redisson, so a Go
// service and a Java service can hold, wait for and release the same lock.
//
// # Locks and holds
//
// A lock is a name with settings and no state: share one value between any
// number of goroutines. What an acquisition returns is a [Hold], and the hold
// is the right to release:
//
//	client, err := latchkey.Connect(ctx, "redis://localhost:6379", latchkey.Options{})
//	defer client.Close(ctx)
//
//	orders := client.NewLock("orders:42")
//	hold, err := orders.Lock(ctx)
//	if err != nil {
//		return err
//	}
//	defer hold.Unlock(ctx)
//	return charge(hold.Context(ctx), order)
//
// A nil error means that the lock is held; any error means that it is not.
//
// # Ownership
//
// Every acquisition gets an owner of its own, so one shared lock value excludes
// goroutines from each other as a mutex does. Re-entry is asked for and never
// guessed: an acquisition under [Hold.Context] of the same lock re-enters, and
// so does one with [By] or [WithOwner]. No goroutine number is involved, and a
// hold may be released by another goroutine than the one that acquired it.
//
// # Loss
//
// A hold is a lease that the client renews. When it can no longer be sure that
// the lease stands, the contexts made by [Hold.Context] end with the cause
// [ErrLost], and [Hold.Lost] closes. That happens before the server could give
// the lock to anybody else, also when nothing can be heard from the server. What
// no lock in Redis can promise is written in docs/guarantees.md; a fencing token
// ([FencedLock]) closes the gap that remains.
package latchkey
