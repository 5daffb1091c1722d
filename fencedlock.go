package latchkey

import "context"

// FencedLock is a re-entrant [Lock] whose holds carry a fencing token
// ([Hold.Token]), on the wire Redisson's RFencedLock. The token of a hold is larger than
// that of any hold before, and stays the same for the whole hold, re-entries included. Tokens
// have gaps: a client whose goroutines wait reserves some thousands for a turn
// ([Options].Turn), and gives out those that it needs. Waiters are served as those of a Lock.
//
// Do not use a name as a FencedLock in one place and as a Lock in another: they
// exclude each other, but the Lock takes no tokens.
type FencedLock struct{ *primitive }

var _ Locker = (*FencedLock)(nil)

// NewFencedLock returns the fenced lock of that name. Nothing is sent.
func (c *Client) NewFencedLock(name string) *FencedLock {
	var l struct { // of one allocation
		FencedLock
		of primitive
	}
	l.of.init(c, fencedSpec, name)
	l.primitive = &l.of
	return &l.FencedLock
}

// Lock acquires the lock, and waits while another owner holds it: until ctx ends or the time
// of [Wait] is over; with neither, without a limit. The other options are [Lease], [MaxHold],
// [AtLeast] and [By].
//
// [Hold.Token] of the result is larger than the token of every earlier hold, as long as the
// server keeps its counter ([Options.TimeFencing] helps when it does not). Pass it to the
// storage that the lock protects, and let the storage refuse a smaller one. Tokens have gaps.
//
// The client renews the hold until Unlock, unless Lease fixes its lease. Cancelling ctx after
// Lock returns does not affect the hold. If ctx carries a hold of this lock
// ([Hold.Context]), or By or [WithOwner] name its owner, Lock enters that hold again at once
// and returns a Hold of its own, with
// the same token, which needs its own Unlock.
//
// A nil error means that you hold the lock. After any other error this call holds nothing,
// and a hold that it was to enter again is not affected. While the server cannot be
// reached, Lock goes on trying. The error matches one of
//
//   - ErrNotAcquired: another owner held the lock until ctx ended or the time of Wait was over
//   - ErrUnavailable: the server could not be asked, or did not answer, when the time was
//     over, or ctx had ended before the call. If a request was sent and not answered, the
//     error also matches ErrUnknownOutcome: the client undoes in the background what the
//     request may have acquired
//   - ErrNotReplicated: too few of the replicas that [Options.Replicas] asks for confirmed
//     the acquisition; it was undone
//   - ErrNotAcquired and ErrLost: the hold to be entered again was lost before this call
//     entered it
//   - ErrClosed: the client is closed, or was closed during the call
//   - ErrWrongKind: the key is another kind of object, or data of an application
//   - ErrInvalid: the name or an option cannot be used; nothing was sent
//   - *rueidis.RedisError: the server refuses for a reason that waiting does not change,
//     such as a missing permission or a lack of memory
//
// No error matches both ErrNotAcquired and ErrUnavailable; the last attempt decides. If ctx
// ended, the error also matches that of ctx. The end of Wait matches no error of a context.
func (l *FencedLock) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return l.acquire(ctx, "lock", true, usualSettings(options))
}

// TryLock makes one attempt to acquire the lock and does not wait for its holder. The options
// are [Lease], [MaxHold], [AtLeast] and [By]. [Hold.Token] of the result is larger than that of
// every earlier hold; a re-entry has the token of the hold that it enters.
//
// ErrNotAcquired means that another owner holds the lock.
// ErrUnavailable means that the server could not be asked: an attempt that meets a server in
// trouble (silent, loading, failing over) is repeated until it is answered, ctx ends, or
// Options.RetryBudget is spent. All other errors, the re-entry of a hold on ctx, and what is
// left behind are as for Lock.
func (l *FencedLock) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
	return l.acquire(ctx, "try lock", false, usualSettings(options))
}

var fencedSpec = &spec{kind: KindFenced, family: KindFenced, stored: KindLock,
	protocol: hashProtocol{}, renew: renewScript, renewals: renewBatch, reentrant: true, fenced: true, passes: true, handsOver: true,
	resolve: resolveOwner, fresh: freshOwner}
