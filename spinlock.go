package latchkey

import (
	"cmp"
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/primitive/lock"
)

// SpinLock is a re-entrant [Lock] whose waiters subscribe to nothing: they try again after growing
// pauses, as those of Redisson's spin lock do. It suits servers where pub/sub is unavailable or too
// expensive. Its releases still wake the waiters of a Lock of the same name.
type SpinLock struct{ *baseLock }

var _ Locker = (*SpinLock)(nil)

// NewSpinLock returns the spin lock of that name; the zero [Backoff] means the defaults. If backoff
// is invalid, every method returns ErrInvalid. NewSpinLock sends nothing.
func (c *Client) NewSpinLock(name string, backoff Backoff) *SpinLock {
	b := backoff.withDefaults()
	names := c.engine().Config.Names(name)
	names.Invalid = cmp.Or(names.Invalid, b.check())
	return &SpinLock{&baseLock{*acquire.LockOf(c.engine(), lock.Spin(lock.Backoff(b).Pause), names)}}
}

// Lock acquires the lock. It waits while another owner holds it, until ctx ends or the time of
// [Wait] is over; with neither, it waits without limit. The other options are [Lease], [MaxHold],
// [AtLeast], [As] and [Note].
//
// Lock subscribes to nothing. It tries again after pauses that grow from Backoff.Initial to
// Backoff.Max, by the factor Backoff.Multiplier; up to half of each is random. It has a place among the
// waiters of other clients; while it is the first of them, it tries after 5 ms and a sixteenth of its
// wait, a tenth of a second at most, if that is sooner. A waiter costs commands for as long as it waits.
// Of the waiters of one client only the first sends commands.
//
// The client renews the hold until Unlock, unless Lease fixes its lease. Canceling ctx after Lock
// returns does not affect the hold. If ctx carries a hold of this lock ([Hold.Context]), or As or
// [WithOwner] names its owner, Lock re-enters that hold at once and returns a Hold of its own,
// which needs its own Unlock.
//
// A nil error means that you hold the lock. After any other error this call holds nothing, and a
// hold that it tried to re-enter is not affected. While the server cannot be reached, Lock keeps
// trying. The error matches one of
//
//   - ErrNotAcquired: another owner held the lock until ctx ended or the time of Wait was over
//   - ErrUnavailable: the server could not be reached or did not answer by the end of the wait
//   - ErrUnknownOutcome, besides one of these two: a request was sent and not answered, perhaps an
//     earlier one; the client undoes in the background what it may have acquired
//   - ErrNotReplicated: fewer replicas than [Options.Replicas] requires confirmed the acquisition;
//     it was undone
//   - ErrNotAcquired and ErrLost: the hold to be re-entered was lost before this call entered it
//   - ErrClosed: the client is closed, or was closed during the call
//   - ErrWrongKind: the key is another kind of object, or data of an application
//   - ErrInvalid: the name or an option cannot be used; nothing was sent
//   - *rueidis.RedisError: the server refuses for a reason that waiting does not change,
//     such as a missing permission or a lack of memory
//
// No error matches both ErrNotAcquired and ErrUnavailable; the last attempt decides. If ctx ended,
// the error also matches that of ctx. The end of Wait matches no context error. If ctx had ended
// before the call, nothing was sent, and the error matches only that of ctx.
func (l *SpinLock) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return asHold(l.inside.Acquire(ctx, "lock", true, usualSettings(options)))
}

// Backoff spaces the attempts of a spin lock. The first pause is Initial; each later one is
// Multiplier times as long, up to Max. Up to half of every pause is cut off at random. Zero fields
// have the defaults, which are Redisson's. With Multiplier 1 the pause is constant. While a waiter is the
// first in the queue its pauses may be shorter: see [SpinLock.Lock].
type Backoff struct {
	Initial    time.Duration
	Max        time.Duration
	Multiplier float64
}

func (b Backoff) withDefaults() Backoff {
	setDefault(&b.Initial, time.Millisecond)
	setDefault(&b.Max, max(128*time.Millisecond, b.Initial))
	setDefault(&b.Multiplier, 2)
	return b
}

func (b Backoff) check() error {
	if b.Initial < time.Millisecond || b.Max < b.Initial || b.Multiplier < 1 || b.Multiplier > 100 {
		return fault.Invalid("Backoff{Initial: %v, Max: %v, Multiplier: %v}, "+
			"want Initial of at least 1ms, Max of at least Initial, Multiplier from 1 to 100", b.Initial, b.Max, b.Multiplier)
	}
	return nil
}
