package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/primitive/lock"
)

// FencedLock is a re-entrant [Lock] whose holds carry a fencing token ([Hold.Token]). It is
// wire-compatible with Redisson's RFencedLock. The token of a hold is larger than that of any hold
// before, and stays the same for the whole hold, re-entries included. Each hold takes its token from
// the server, so [Tuning].Turn does not apply: nothing is passed on in memory. Waiters are served as
// those of a [Lock] are.
//
// Do not use a name as a FencedLock in one place and as a Lock in another. The two exclude each
// other, but the Lock takes no tokens.
type FencedLock struct{ *baseLock }

var _ Locker = (*FencedLock)(nil)

// NewFencedLock returns the fenced lock with that name. It sends nothing.
func (c *Client) NewFencedLock(name string) *FencedLock {
	return &FencedLock{newBaseLock(c.engine(), lock.Fenced, name)}
}

// Lock acquires the lock. It waits while another owner holds it, until ctx ends or the time of
// [Wait] is over; with neither, it waits without limit. The other options are [Lease], [MaxHold],
// [AtLeast], [As] and [Note].
//
// [Hold.Token] of the result is larger than the token of every earlier hold, as long as the server
// keeps its counter ([Options.TimeFencing] helps when it does not). Pass the token to the storage
// that the lock protects, and let the storage refuse a smaller one. Tokens may have gaps.
//
// The client renews the hold until Unlock, unless Lease fixes its lease. Canceling ctx after Lock
// returns does not affect the hold. If ctx carries a hold of this lock ([Hold.Context]), or As or
// [WithOwner] names its owner, Lock re-enters that hold at once. It returns a Hold of its own, with
// the same token, which needs its own Unlock.
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
func (l *FencedLock) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return asHold(l.inside.Acquire(ctx, "lock", true, usualSettings(options)))
}

// TryLock makes one attempt to acquire the lock and does not wait for its holder. The options are
// [Lease], [MaxHold], [AtLeast], [As] and [Note]. [Hold.Token] of the result is larger than that of
// every earlier hold; a re-entry has the token of the hold that it enters.
//
// ErrNotAcquired means that another owner holds the lock. ErrUnavailable means that the server
// could not be reached: an attempt that meets a server in trouble (silent, loading, failing over)
// is repeated until it is answered, ctx ends, or Options.RetryBudget is spent. All other errors,
// the re-entry of a hold on ctx, and the state left behind are as for Lock.
func (l *FencedLock) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
	return asHold(l.inside.Acquire(ctx, "try lock", false, usualSettings(options)))
}
