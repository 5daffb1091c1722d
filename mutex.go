package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
)

// Mutex is the plain lock of the Redis documentation: SET name token NX PX, and a
// compare-and-delete. It shares its keys with redis-py, redsync, node-redlock and
// other libraries that follow the recipe. It is the cheapest lock, and it is not
// re-entrant.
//
// A release by this package gives the mutex to the next waiter of this package, in the order that
// [Lock] describes. Other users of the recipe publish nothing. While one of them holds the mutex, a
// waiter polls four times a second, and about 100 times a second while the mutex changes hands
// among them. A client that takes it again and again leaves it free from time to time, so that they
// can acquire it.
type Mutex struct{ *baseLock }

var _ Locker = (*Mutex)(nil)

// NewMutex returns the plain lock with that name. It sends nothing.
func (c *Client) NewMutex(name string) *Mutex {
	return &Mutex{newBaseLock(c.engine(), lock.Mutex, name)}
}

// Lock acquires the mutex. It waits while another owner holds it, until ctx ends or the time of
// [Wait] is over; with neither, it waits without limit. The other options are [Lease], [MaxHold],
// [AtLeast] and [Note].
//
// A mutex is not re-entrant. Under the context of its own hold ([Hold.Context]) Lock returns
// ErrInvalid at once, as it does with [As]. An owner that [WithOwner] put on ctx has no effect.
//
// The client renews the hold until Unlock, unless Lease fixes its lease. Canceling ctx after
// Lock returns does not affect the hold.
//
// A nil error means that you hold the mutex. After any other error this call holds nothing. While
// the server cannot be reached, Lock keeps trying. The error matches one of
//
//   - ErrNotAcquired: another owner held the mutex until ctx ended or the time of Wait was over
//   - ErrUnavailable: the server could not be reached or did not answer by the end of the wait
//   - ErrUnknownOutcome, besides one of these two: a request was sent and not answered, perhaps an
//     earlier one; the client undoes in the background what it may have acquired
//   - ErrNotReplicated: fewer replicas than [Options.Replicas] requires confirmed the acquisition;
//     it was undone
//   - ErrClosed: the client is closed, or was closed during the call
//   - ErrWrongKind: the key is a lock or another kind of object, or data of an application
//   - ErrInvalid: the call is a re-entry, or the name or an option cannot be used; nothing was sent
//   - *rueidis.RedisError: the server refuses for a reason that waiting does not change,
//     such as a missing permission or a lack of memory
//
// No error matches both ErrNotAcquired and ErrUnavailable; the last attempt decides. If ctx ended,
// the error also matches that of ctx. The end of Wait matches no context error. If ctx had ended
// before the call, nothing was sent, and the error matches only that of ctx.
func (m *Mutex) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return asHold(m.inside.Acquire(ctx, "lock", true, usualSettings(options)))
}

// TryLock makes one attempt to acquire the mutex and does not wait for its holder. The options
// are [Lease], [MaxHold], [AtLeast] and [Note].
//
// ErrNotAcquired means that another owner holds the mutex. Under the context of its own hold
// TryLock returns ErrInvalid: a mutex is not re-entrant. ErrUnavailable means that the server could
// not be reached: an attempt that meets a server in trouble (silent, loading, failing over) is
// repeated until it is answered, ctx ends, or Options.RetryBudget is spent. The other errors and
// the state left behind are as for Lock.
func (m *Mutex) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
	return asHold(m.inside.Acquire(ctx, "try lock", false, usualSettings(options)))
}

// Do acquires the mutex as Lock does, with the same options and the same waiting, calls fn,
// and releases the mutex when fn returns or panics.
//
// The context of fn carries the hold: HoldFrom returns it, and another acquisition of the mutex
// under the context returns ErrInvalid. The context ends when ctx ends or the hold is lost (its
// cause then matches ErrLost). The release works even if ctx has ended, as [Hold.Unlock] does.
//
// If the mutex is not acquired, Do returns the error of Lock and does not call fn. Otherwise it
// returns the error of fn. It joins that with the error of [Hold.Err] (ErrLost, ErrMaxHold,
// ErrClosed) if the hold ended while fn ran, even if fn returned nil, or with the error of Unlock
// if the release failed.
//
// ErrNotAcquired and ErrUnavailable of this call mean that fn was not called. If fn ran and
// its release was not confirmed, the error matches ErrUnknownOutcome and not ErrUnavailable:
// do not repeat the work.
func (m *Mutex) Do(ctx context.Context, fn func(context.Context) error, options ...LockOption) error {
	return acquire.Do(ctx, m.self(), fn, settingsOf(options))
}

// ForceUnlock deletes the token of the mutex, also one of another library, gives the mutex to the
// next waiter, and reports whether there was a token. It removes any token that another library may
// have written, even if that is data of an application; [Client.ForceUnlock] removes tokens of this
// library only. A hold that begins after ForceUnlock has read the token is not touched.
//
// The former holder is not notified. If it is a client of this library, its hold ends with ErrLost
// at its next renewal, at most a third of its lease later. A hold with a fixed lease ([Lease]) ends
// when that is over. If other goroutines of its client wait for the mutex, the hold ends within
// Tuning.PollCeiling. Until then the holder continues, so two owners may be in the critical
// section.
//
// The errors are those of Inspect, and ErrUnknownOutcome: the removal was sent and not answered. It
// may or may not have happened, and you may repeat it.
func (m *Mutex) ForceUnlock(ctx context.Context) (bool, error) {
	return m.baseLock.ForceUnlock(ctx)
}
