package latchkey

import (
	"context"
)

// Mutex is the plain lock of the Redis documentation: SET name token NX PX, and a
// compare-and-delete. It shares its keys with redis-py, redsync, node-redlock and
// other libraries that follow the recipe. It is the cheapest lock, and it is not
// re-entrant.
//
// A release by this package gives the mutex to the next waiter of this package, in the order
// that [Lock] describes. Other users of the recipe publish nothing: while one of them holds the
// mutex, a waiter asks four times a second, and up to 200 times while it changes hands among them.
// So that they find it free, a client leaves it to them for a moment after each turn.
type Mutex struct{ *primitive }

var _ Locker = (*Mutex)(nil)

// NewMutex returns the plain lock of that name. Nothing is sent.
func (c *Client) NewMutex(name string) *Mutex {
	var l struct { // of one allocation
		Mutex
		of primitive
	}
	l.of.init(c, mutexSpec, name)
	l.primitive = &l.of
	return &l.Mutex
}

// Lock acquires the mutex, and waits while another owner holds it: until ctx ends or the time
// of [Wait] is over; with neither, without a limit. The other options are [Lease],
// [MaxHold] and [AtLeast].
//
// A mutex is not re-entrant. Under the context of its own hold ([Hold.Context]) Lock returns
// ErrInvalid at once, as it does with [By]; an owner that [WithOwner] put on ctx has no effect.
//
// The client renews the hold until Unlock, unless Lease fixes its lease. Cancelling ctx after
// Lock returns does not affect the hold.
//
// A nil error means that you hold the mutex. After any other error this call holds nothing.
// While the server cannot be reached, Lock goes on trying. The error matches one of
//
//   - ErrNotAcquired: another owner held the mutex until ctx ended or the time of Wait was over
//   - ErrUnavailable: the server could not be asked, or did not answer, when the time was
//     over, or ctx had ended before the call. If a request was sent and not answered, the
//     error also matches ErrUnknownOutcome: the client undoes in the background what the
//     request may have acquired
//   - ErrNotReplicated: too few of the replicas that [Options.Replicas] asks for confirmed
//     the acquisition; it was undone
//   - ErrClosed: the client is closed, or was closed during the call
//   - ErrWrongKind: the key is a lock or another kind of object, or data of an application
//   - ErrInvalid: a re-entry, or the name or an option cannot be used; nothing was sent
//   - *rueidis.RedisError: the server refuses for a reason that waiting does not change,
//     such as a missing permission or a lack of memory
//
// No error matches both ErrNotAcquired and ErrUnavailable; the last attempt decides. If ctx
// ended, the error also matches that of ctx. The end of Wait matches no error of a context.
func (m *Mutex) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return m.acquire(ctx, "lock", true, usualSettings(options))
}

// TryLock makes one attempt to acquire the mutex and does not wait for its holder. The options
// are [Lease], [MaxHold] and [AtLeast].
//
// ErrNotAcquired means that another owner holds the mutex. Under the context of its own hold
// TryLock returns ErrInvalid: a mutex is not re-entrant. ErrUnavailable means that the server
// could not be asked: an attempt that meets a server in trouble (silent, loading, failing
// over) is repeated until it is answered, ctx ends, or Options.RetryBudget is spent. The
// other errors and what is left behind are as for Lock.
func (m *Mutex) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
	return m.acquire(ctx, "try lock", false, usualSettings(options))
}

// Do acquires the mutex as Lock does, with the same options and the same waiting, calls fn,
// and releases the mutex when fn returns or panics.
//
// The context of fn carries the hold: it ends when the hold is lost (its cause then matches
// ErrLost) or ctx ends, and [HoldFrom] returns the hold. Another acquisition of the mutex
// under it is an ErrInvalid. The release does not depend on ctx, as that of [Hold.Unlock].
//
// If the mutex is not acquired, Do returns the error of Lock and does not call fn.
// Otherwise it returns the error of fn, joined with that of [Hold.Err] (ErrLost, ErrMaxHold,
// ErrClosed) if the hold ended while fn ran, also if fn returned nil, or with the error of
// Unlock if the release failed.
//
// ErrNotAcquired and ErrUnavailable of this call mean that fn was not called. If fn ran and
// its release was not confirmed, the error matches ErrUnknownOutcome and not ErrUnavailable:
// do not repeat the work.
func (m *Mutex) Do(ctx context.Context, fn func(context.Context) error, options ...LockOption) error {
	return do(ctx, m, fn, settingsOf(options))
}

// ForceUnlock deletes the token of the mutex, also one of another library, gives the mutex to the next waiter, and
// reports whether there was one. Any token that another library may have written is removed, also one
// that only looks like a token and is data of an application: see [Client.ForceUnlock], which
// removes tokens of this library only. A hold that begins after ForceUnlock has looked is not
// touched.
//
// ForceUnlock does not ask the former holder. If it is a client of this library, its hold ends with
// ErrLost at its next renewal, a third of its lease later at most; one with a fixed lease
// ([Lease]) ends when that is over. If goroutines of its client wait for it, it ends within
// Options.PollCeiling. Until then it works on, and two may be inside.
//
// The errors are those of Inspect, and ErrUnknownOutcome: the removal was sent and not
// answered. It may or may not have happened, and may be repeated.
func (m *Mutex) ForceUnlock(ctx context.Context) (bool, error) {
	return m.primitive.ForceUnlock(ctx)
}

// mutexSpec asks more often than the others, see waitqueue_pollers.go.
var mutexSpec = &spec{kind: KindMutex, family: KindMutex, stored: KindMutex,
	protocol: stringProtocol{}, renew: renewScript, renewals: renewBatch, passes: true, handsOver: true, recipe: true,
	resolve: resolveOwner, fresh: freshOwner}
