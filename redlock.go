package latchkey

import (
	"context"
	"errors"
	"fmt"
	"time"
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
// What it does not give: it is no consensus. A server that forgets the lock (a restart
// without persistence, a failover of a member) may help another majority; clocks that run
// at different rates break the arithmetic; code that is paused is not stopped, and there
// are no fencing tokens across servers. docs/several.md has the whole of it.
//
// Errors say which member failed in which way. Members are counted from 1 in the order
// they were given.
//
// [By] does not apply: members of several clients have no owner in common.
type RedLock struct {
	several
	options RedLockOptions
	servers *redServers
}

// RedLockOptions are the settings of a [RedLock].
type RedLockOptions struct {
	// MemberTimeout is how long one member is tried. It should be small against the lease.
	// Default: a hundredth of the lease, but not less than 50 ms, nor more than 500 ms.
	MemberTimeout time.Duration
	// RetryDelay is the longest pause before another round; half of it is random.
	// Default: 200 ms.
	RetryDelay time.Duration
}

var _ Locker = (*RedLock)(nil)

// Defaults of [RedLockOptions].
const (
	minMemberTimeout         = 50 * time.Millisecond
	maxMemberTimeout         = 500 * time.Millisecond
	DefaultRedLockRetryDelay = 200 * time.Millisecond
)

// NewRedLock returns the lock that is a majority of the locks given. Nothing is sent. No lock at all, one that cannot be used, and one that stands
// there twice, also inside of another, are an ErrInvalid of every method; so are two locks
// on one server, which is found out when both servers have answered.
func NewRedLock(options RedLockOptions, locks ...Locker) *RedLock {
	members, err := membersOf(locks)
	if err == nil {
		err = once(members)
	}
	if err == nil {
		_, err = distinct(members)
	}
	if err == nil && (options.MemberTimeout < 0 || options.RetryDelay < 0) {
		err = invalid("a time is negative")
	}
	setDefault(&options.RetryDelay, DefaultRedLockRetryDelay)
	need := len(members)/2 + 1
	l := &RedLock{several{kind: KindRed, members: members, need: need, invalid: err}, options, newRedServers(members, need)}
	l.several.take = l.takeMajority
	return l
}

// Lock acquires a majority of the members. It tries all of them at once, each for
// RedLockOptions.MemberTimeout, and if it does not get a majority releases what it got and
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
// If ctx ended during the call, the error also matches that of ctx. The end of Wait, and of a
// member's time, matches no error of a context.
func (l *RedLock) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return l.acquire(ctx, "lock", true, settingsOf(options))
}

// TryLock makes one attempt: it tries all members at once, each for
// RedLockOptions.MemberTimeout, and does not try again. The options are [Lease] and [MaxHold].
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
func (l *RedLock) Do(ctx context.Context, fn func(context.Context) error, options ...LockOption) error {
	return do(ctx, l, fn, settingsOf(options))
}

// takeMajority goes round until a majority is held.
func (l *RedLock) takeMajority(ctx context.Context, r *request, settings []setting) (*Hold, error) {
	if ctx.Err() != nil {
		return nil, contextError(ctx)
	}
	if err := l.servers.check(ctx); err != nil {
		return nil, err
	}
	var before error // what the round before the last has met
	for {
		h, again, err := l.round(ctx, r, settings)
		switch {
		case err == nil:
			return h, nil
		case !again || !r.waits:
			return nil, ended(ctx, err)
		case ctx.Err() != nil:
			return nil, errors.Join(ended(ctx, err), before)
		}
		before = err
		if stopped := rest(ctx, nil, jitter(l.options.RetryDelay)); stopped != nil {
			return nil, errors.Join(stopped, err)
		}
	}
}

// round tries all members at once. After an error nothing is held but what is being
// released; again tells whether another round may go better.
func (l *RedLock) round(ctx context.Context, r *request, settings []setting) (h *Hold, again bool, err error) {
	g := newGroup(l.Name(), len(l.members), l.need, l.memberTimeout(r))
	t := l.try(ctx, l.memberTimeout(r), settings)
	failures := t.gather(ctx, g)
	if err := g.elect(r); err != nil {
		t.cancel()
		go t.collect(g)
		g.abandon(ctx)
		again, err = l.defeat(err, failures)
		return nil, again, err
	}
	g.arriving = make(chan struct{})
	go func() {
		t.collect(g)
		close(g.arriving)
		if r.renew && r.maxHold == 0 { // else a member that came later would last longer
			l.mendLater(context.WithoutCancel(ctx), g, r, settings)
		}
	}()
	return newGroupHold(g), false, nil
}

// elect makes a hold of the majority that there is, or is not.
func (g *group) elect(r *request) error {
	switch {
	case g.held() < g.need:
		return errTooFew
	case g.begin() != nil:
		return g.err()
	case g.validFor() < leastValidity(r):
		return errLate
	}
	return nil
}

// defeat is the error of a round, and whether another may go better. If too many members
// fail in a way that waiting cannot mend, it is theirs; what a few say of themselves is
// told, but it is not the word of the whole.
func (l *RedLock) defeat(err error, failures []error) (again bool, _ error) {
	causes := []error{ErrNotAcquired, err}
	var final []error
	for _, failure := range failures {
		if hopeless(failure) {
			final = append(final, failure)
			failure = errors.New(failure.Error())
		}
		causes = append(causes, failure)
	}
	if len(final) > len(l.members)-l.need {
		return false, errors.Join(final...)
	}
	return true, errors.Join(causes...)
}

var errTooFew = errors.New("latchkey: no majority")

// leastValidity is what has to be left of a fixed lease for the hold to be of use.
func leastValidity(r *request) time.Duration {
	if r.renew {
		return MinLease
	}
	return r.lease / 10
}

func (l *RedLock) memberTimeout(r *request) time.Duration {
	if l.options.MemberTimeout > 0 {
		return l.options.MemberTimeout
	}
	return min(max(r.lease/100, minMemberTimeout), maxMemberTimeout)
}

// tries are attempts at several members that are under way.
type tries struct {
	outcomes chan outcome
	left     int
	members  []member
	timeout  time.Duration
	cancel   context.CancelFunc
}

// outcome is what came of one.
type outcome struct {
	place int
	hold  *Hold
	err   error
}

// try begins to try some members, or all. It does not end with the caller's context: who
// is needed no more is released when it comes.
func (l *RedLock) try(ctx context.Context, timeout time.Duration, settings []setting, places ...int) *tries {
	if places == nil {
		places = indexes(l.members)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	t := &tries{make(chan outcome, len(places)), len(places), l.members, timeout, cancel}
	for _, i := range places {
		go func() {
			h, err := l.members[i].acquire(ctx, "try lock", false, settings)
			t.outcomes <- outcome{i, h, err}
		}()
	}
	return t
}

// gather fills the group until it is complete or cannot be any more, and returns what
// stood in its way.
func (t *tries) gather(ctx context.Context, g *group) (failures []error) {
	for t.left > 0 && g.held() < g.need && t.open(failures, g.need) {
		select {
		case o := <-t.outcomes:
			t.left--
			if o.err == nil {
				g.add(o.place, o.hold)
			} else {
				failures = append(failures, t.failure(o))
			}
		case <-ctx.Done():
			return append(failures, contextError(ctx))
		}
	}
	return failures
}

// open reports whether the members that are missing can still turn the outcome: to a
// majority, or to the certainty that there will never be one.
func (t *tries) open(failures []error, need int) bool {
	spare := len(t.members) - need
	final := 0
	for _, failure := range failures {
		if hopeless(failure) {
			final++
		}
	}
	return len(failures) <= spare || final > 0 && final <= spare && final+t.left > spare
}

// failure is the error of a member. The end of its time is not that of the caller's.
func (t *tries) failure(o outcome) error {
	err := o.err
	if isContextError(err) {
		err = errors.Join(fmt.Errorf("no answer within %v", t.timeout), besidesContext(err))
	}
	return ofMember(o.place, fmt.Errorf("%s: %w", t.members[o.place].Name(), err))
}

// besidesContext is what an error says besides that a context ended, nil if nothing.
func besidesContext(err error) error {
	if err == ErrNotAcquired { //nolint:errorlint // the leaf, not what contains it
		return nil
	}
	if !isContextError(err) {
		return err
	}
	all, are := err.(interface{ Unwrap() []error })
	if !are {
		return nil
	}
	var rest []error
	for _, each := range all.Unwrap() {
		rest = append(rest, besidesContext(each))
	}
	return errors.Join(rest...)
}

// collect waits for the rest: members that come late join the group, or are released if
// it is over.
func (t *tries) collect(g *group) {
	defer t.cancel()
	for ; t.left > 0; t.left-- {
		if o := <-t.outcomes; o.err == nil && !g.add(o.place, o.hold) {
			giveBack(context.Background(), []*Hold{o.hold}, 0) // it may have fallen silent, and others come behind it
		}
	}
}

// mendLater has members that are missing tried again, for as long as the hold lasts: the
// more there are, the more may be lost.
func (l *RedLock) mendLater(ctx context.Context, g *group, r *request, settings []setting) {
	period := max(g.validFor()/3, minMemberTimeout)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state.over() || g.state.leaving || g.confined != nil {
		return
	}
	g.mending = time.AfterFunc(period, func() {
		if places := g.missing(); len(places) > 0 {
			l.try(ctx, l.memberTimeout(r), settings, places...).collect(g)
		}
		l.mendLater(ctx, g, r, settings)
	})
}
