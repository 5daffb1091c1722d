package latchkey

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/internal/transport"
)

// RedLock is a majority of several locks on independent servers: the algorithm of the
// Redis documentation (https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/).
// It is held as long as more than half of its members are, so that it survives the loss
// of the others. Over [Mutex] members it excludes redsync, node-redlock and whatever else
// follows that algorithm on the same keys.
//
// All members are tried at once, each for RedLockOptions.MemberTimeout at most. The hold
// begins when a majority is held and enough of its leases is left: what they have lost
// meanwhile, and a drift margin, is taken off ([Hold.ValidFor]). Else everything is
// released, and tried again after a random pause. Members that are missing are tried again
// while the hold lasts, at a third of the lease.
//
// Goroutines of one program that want the same RedLock stand in one line, and only the first of
// them asks the servers. It is the same if it has the same members, of the same clients, whichever
// RedLock value and order. Unlock passes the hold to the next in memory, as that of a lock does,
// for the shortest [Options].Turn of its clients; docs/reference/several.md says when. Between programs there
// is no order.
//
// It is not consensus. A server that forgets the lock (a restart
// without persistence, a failover of a member) may help another majority; clocks that run
// at different rates break the arithmetic; code that is paused is not stopped, and there
// are no fencing tokens across servers. See docs/reference/several.md.
//
// Errors say which member failed in which way. Members are counted from 1 in the order
// they were given.
//
// [By] does not apply: members of several clients have no owner in common.
type RedLock struct {
	compositeLock
	options RedLockOptions
	servers *redServers
}

// RedLockOptions are the settings of a [RedLock].
type RedLockOptions struct {
	// MemberTimeout is how long one member is tried. It should be small against the lease.
	// Default: a hundredth of the lease, but not less than 50 ms, nor more than 500 ms.
	MemberTimeout time.Duration
	// RetryDelay is the longest pause before another round; half of it is random. It is also the
	// longest time that a program leaves to others after it has had the lock, if more of its
	// goroutines are in line. Default: 200 ms.
	RetryDelay time.Duration
}

func (o RedLockOptions) check() error {
	switch {
	case o.MemberTimeout < 0:
		return invalid("RedLockOptions.MemberTimeout %v is negative", o.MemberTimeout)
	case o.RetryDelay < 0:
		return invalid("RedLockOptions.RetryDelay %v is negative", o.RetryDelay)
	}
	return nil
}

var _ Locker = (*RedLock)(nil)

// Defaults of [RedLockOptions].
const (
	minMemberTimeout         = 50 * time.Millisecond
	maxMemberTimeout         = 500 * time.Millisecond
	DefaultRedLockRetryDelay = 200 * time.Millisecond
)

// NewRedLock returns the lock that is a majority of the locks given. Nothing is sent. No lock
// at all, one that cannot be used, and one that is there twice, also inside another, are an
// ErrInvalid of every method; so are two locks on one server, which is found out when both
// servers have answered.
func NewRedLock(options RedLockOptions, locks ...Locker) *RedLock {
	members, err := membersOf(locks)
	if err == nil {
		err = refuseDuplicates(members)
	}
	if err == nil {
		_, err = dropDuplicates(members)
	}
	if err == nil {
		err = options.check()
	}
	setDefault(&options.RetryDelay, DefaultRedLockRetryDelay)
	need := len(members)/2 + 1
	lock := compositeLock{kind: KindRed, members: members, need: need, invalid: err, pause: options.RetryDelay}
	l := &RedLock{compositeLock: lock, options: options, servers: newRedServers(members, need)}
	if err == nil && l.hasOrder() {
		l.standInLine(l)
	}
	l.prepare, l.round = l.askServers, l.acquireMajority
	return l
}

// Lock acquires a majority of the members. It waits behind the goroutines of this program that came
// before. Then it tries all members at once, each for RedLockOptions.MemberTimeout, and if it does not get a majority releases what it got and
// tries again after a random pause of at most RedLockOptions.RetryDelay: until ctx ends or the
// time of [Wait] is over; with neither, without a limit.
//
// The other options are [Lease] and [MaxHold], of every member. [By] is an ErrInvalid. Without
// Lease the members are renewed until Unlock. A member of which ctx carries a hold
// ([Hold.Context]) is entered again. Cancelling ctx after Lock returns does not affect the hold.
//
// A nil error means that you hold a majority, for [Hold.ValidFor] at least. After any other
// error nothing is held: members that were acquired, or may have been, are released, in the
// background where a server does not answer. The text says which member failed in which way.
// The error matches one of
//
//   - ErrNotAcquired: others held so many members that there was no majority, until ctx ended
//     or the time of Wait was over
//   - ErrUnavailable: so many servers could not be asked, or did not answer, that there was no
//     majority in the last round. If requests were sent and not answered, the error also
//     matches ErrUnknownOutcome: the clients undo in the background what they may have acquired
//   - ErrClosed, ErrWrongKind, *rueidis.RedisError and others: so many members failed for good
//     that there cannot be a majority; returned at once
//   - ErrInvalid: the members or an option cannot be used, which may be found out when the
//     servers have answered
//
// A call that waits in line is told what the first in line has met. If ctx ended during the call, the error
// also matches that of ctx. The end of Wait, and of a member's time, matches no error of a context.
func (l *RedLock) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return l.acquire(ctx, "lock", true, settingsOf(options))
}

// TryLock makes one attempt: it tries all members at once, each for
// RedLockOptions.MemberTimeout, and does not try again. It stands in no line: the servers say
// whether the lock is free, also while this program holds it. The options are [Lease] and [MaxHold].
//
// ErrNotAcquired means that others hold too many members. ErrUnavailable means that too many
// servers could not be asked or did not answer. All other errors are as for Lock.
func (l *RedLock) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
	return l.acquire(ctx, "try lock", false, settingsOf(options))
}

// Do acquires the lock as Lock does, with the same options and the same waiting, calls fn,
// and releases the lock when fn returns or panics.
//
// The context of fn carries the hold: it ends when the hold is lost (its cause then matches
// ErrLost) or ctx ends, an acquisition of a member under it is a re-entry, and [HoldFrom]
// returns the hold. The release does not depend on ctx, as that of [Hold.Unlock].
//
// If the lock is not acquired, Do returns the error of Lock and does not call fn.
// Otherwise it returns the error of fn, joined with that of [Hold.Err] (ErrLost, ErrMaxHold,
// ErrClosed) if the hold ended while fn ran, also if fn returned nil, or with the error of
// Unlock if the release failed.
//
// ErrNotAcquired and ErrUnavailable of this call mean that fn was not called. If fn ran and
// its release was not confirmed, the error matches ErrUnknownOutcome and not ErrUnavailable:
// do not repeat the work.
func (l *RedLock) Do(ctx context.Context, fn func(context.Context) error, options ...LockOption) error {
	return do(ctx, l, fn, settingsOf(options))
}

// askServers makes sure that no two members are on one server.
func (l *RedLock) askServers(ctx context.Context, _ *request, settings []setting) ([]setting, error) {
	if ctx.Err() != nil {
		return nil, transport.ContextError(ctx)
	}
	return settings, l.servers.check(ctx)
}
