package latchkey

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// MultiLock is several locks that are acquired together, all or none. They may be of any
// kind, also of different clients and servers, and several themselves. It stores nothing
// of its own, as Redisson's RedissonMultiLock does not.
//
// Members are waited for in one order everywhere: that of their keys, then of their
// kinds. Whoever waits for one holds only members that come before it. So groups that
// overlap cannot wait for each other in a circle. Members of the same key on different
// servers have no order among them; a wait for one of those is given up after about a
// second, everything is released, and tried again after a moment.
//
// The hold is lost when one member is. Unlock releases all of them, whatever becomes of
// some. A failover that loses one member loses the whole: see [RedLock] for the opposite.
//
// The options of an acquisition apply to each member, but [Wait] and the context to the
// whole, and [By] not at all. [Lease] and [MaxHold] begin when the last member is there:
// until then those that are held are renewed, so that a member may be waited for longer
// than they allow. A process that dies while it waits keeps them no longer than that lease.
type MultiLock struct{ compositeLock }

// NewMultiLock returns the lock that is all of the locks given. One that stands there twice
// counts once. Nothing is sent. No lock at all, one that cannot be used, and two that have
// a key in common without being the same (the sides of a read/write lock, a RedLock and
// its member, two RedLocks over one lock) are an ErrInvalid of every method.
func NewMultiLock(locks ...Locker) *MultiLock {
	members, err := membersOf(locks)
	if err == nil {
		members, err = distinct(inOrder(flat(members)))
	}
	l := &MultiLock{compositeLock{kind: KindMulti, members: members, need: len(members), invalid: err}}
	l.run = l.acquireAll
	return l
}

var _ Locker = (*MultiLock)(nil)

// Lock acquires all members, or none. It waits while somebody else holds one of them: until
// ctx ends or the time of [Wait] is over; with neither, without a limit. While it waits for a
// member it holds those before it, and no others.
//
// The other options are [Lease] and [MaxHold]. They apply to the whole and begin when the last
// member is held; without Lease every member is renewed until Unlock. [By] is an ErrInvalid.
// A member of which ctx carries a hold ([Hold.Context]) is entered again. Cancelling ctx after
// Lock returns does not affect the hold.
//
// A nil error means that you hold every member. After any other error nothing is held: what
// was acquired is released, in the background once the time is over. The text names the member
// at fault. The error matches one of
//
//   - ErrNotAcquired: somebody else held a member until ctx ended or the time of Wait was over
//   - ErrUnavailable: the server of a member could not be asked, or did not answer, when the
//     time was over. If a request was sent and not answered, the error also matches
//     ErrUnknownOutcome: the client undoes in the background what the request may have acquired
//   - ErrNotReplicated, ErrLost, ErrClosed, ErrWrongKind, ErrUpgrade: one member failed in that
//     way, as its own Lock does; the others are not waited for
//   - ErrInvalid: the members or an option cannot be used; nothing was sent
//   - *rueidis.RedisError: a server refuses for a reason that waiting does not change
//
// If ctx ended during the call, the error also matches that of ctx. The end of Wait matches
// no error of a context.
func (l *MultiLock) Lock(ctx context.Context, options ...LockOption) (*Hold, error) {
	return l.acquire(ctx, "lock", true, settingsOf(options))
}

// TryLock makes one attempt to acquire all members at the same time, and does not wait. The
// options are [Lease] and [MaxHold].
//
// ErrNotAcquired means that somebody else holds a member; the members that were free have
// been released again. ErrUnavailable means that the server of a member could not be asked: an
// attempt that meets a server in trouble is repeated until it is answered, ctx ends, or
// Options.RetryBudget of that client is spent. All other errors are as for Lock.
func (l *MultiLock) TryLock(ctx context.Context, options ...TryLockOption) (*Hold, error) {
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
func (l *MultiLock) Do(ctx context.Context, fn func(context.Context) error, options ...LockOption) error {
	return do(ctx, l, fn, settingsOf(options))
}

// tied reports whether a member has no order against another.
func (l *MultiLock) tied() bool {
	for i := 1; i < len(l.members); i++ {
		a, _ := l.members[i-1].order()
		b, _ := l.members[i].order()
		if a == b {
			return true
		}
	}
	return false
}

// acquireAll goes round until all members are held.
func (l *MultiLock) acquireAll(ctx context.Context, r *request, settings []setting) (*Hold, error) {
	if r.confines() {
		settings = append(settings, setting{kind: settingUntilWhole})
	}
	var before error // what the round before met
	for {
		began := time.Now()
		h, again, err := l.round(ctx, r, settings)
		if err == nil || !again || !r.waits || ctx.Err() != nil {
			return h, cutShort(ctx, began, err, before)
		}
		before = err
		if stopped := rest(ctx, nil, jitter(tiedPause)); stopped != nil {
			return nil, withContextEnd(ctx, err)
		}
	}
}

// round acquires all members, and makes one hold of them. After an error nothing is
// held; again tells whether another round may go better.
func (l *MultiLock) round(ctx context.Context, r *request, settings []setting) (h *Hold, again bool, err error) {
	holds := make([]*Hold, len(l.members))
	if err := l.acquireInOrder(ctx, r, settings, holds); err != nil {
		giveBack(ctx, holds, maxMemberTimeout)
		var tied *tiedError
		return nil, errors.As(err, &tied), err
	}
	h, err = l.whole(ctx, r, holds)
	return h, !hopeless(err), err
}

const (
	tiedPatience = time.Second
	tiedPause    = 100 * time.Millisecond
)

// tiedError means that the wait for a member was given up because it might be one in a
// circle: what the member said last.
type tiedError struct{ error }

func (e *tiedError) Unwrap() error { return e.error }

// tiedAfter leaves out that the time for that member is over, which was not the caller's.
func tiedAfter(m member, err error) error {
	rest := bare(err)
	if errors.Is(err, ErrUnavailable) {
		rest = unavailable(rest)
	}
	if errors.Is(err, ErrUnknownOutcome) {
		rest = errors.Join(ErrUnknownOutcome, rest)
	}
	return &tiedError{fmt.Errorf("%q: %w", m.Name(), rest)}
}

// acquireInOrder fills holds: with those that are free at once, all at the same time; at the
// first in order that is not it lets the ones after it go, waits, and goes on. What it has
// taken when it fails is left there.
func (l *MultiLock) acquireInOrder(ctx context.Context, r *request, settings []setting, holds []*Hold) error {
	var busy error // what the try before met
	for from := 0; from < len(holds); {
		began := time.Now()
		first, err := l.tryFrom(ctx, settings, holds, from)
		if err == nil {
			return nil
		}
		if !r.waits || ctx.Err() != nil || hopeless(err) {
			return cutShort(ctx, began, err, busy)
		}
		busy, began = err, time.Now()
		if holds[first], err = l.await(ctx, l.members[first], settings); err != nil {
			return cutShort(ctx, began, err, busy)
		}
		from = first + 1
	}
	return nil
}

// tryFrom tries all members from one on, and lets go of what it got behind the first that
// was busy.
func (l *MultiLock) tryFrom(ctx context.Context, settings []setting, holds []*Hold, from int) (first int, err error) {
	places := make([]int, 0, len(holds)-from)
	for i := from; i < len(holds); i++ {
		places = append(places, i)
	}
	errs := atOnce(places, func(i int) (err error) {
		holds[i], err = l.members[i].acquire(ctx, "try lock", false, settings)
		return err
	})
	first = slices.IndexFunc(errs, func(err error) bool { return err != nil })
	if first < 0 {
		return 0, nil
	}
	err = errs[first]
	if i := slices.IndexFunc(errs, hopeless); i >= 0 {
		err = errs[i] // there is nothing to wait for
	}
	first += from
	giveBack(ctx, holds[first:], maxMemberTimeout)
	clear(holds[first:])
	return first, err
}

// await waits for one member.
func (l *MultiLock) await(ctx context.Context, member member, settings []setting) (*Hold, error) {
	if !l.tied() {
		return member.acquire(ctx, "lock", true, settings)
	}
	h, err := member.acquire(ctx, "lock", true, append(slices.Clone(settings), setting{kind: settingWait, d: tiedPatience/2 + rand.N(tiedPatience)}))
	if err != nil && ctx.Err() == nil && waitOver(err) {
		return nil, tiedAfter(member, err)
	}
	return h, err
}

// whole makes one hold of all. Fixed leases begin anew, so that the whole has what was
// asked for, however long the last member took.
func (l *MultiLock) whole(ctx context.Context, r *request, holds []*Hold) (*Hold, error) {
	g := newCompositeHold(l.Name(), len(holds), len(holds), maxMemberTimeout)
	for i, h := range holds {
		g.add(i, h)
	}
	err := g.begin() // the first may have been lost when the last one came
	if r.confines() {
		g.confine(confinement{fixed: !r.renew})
	}
	if err == nil && !r.renew && (r.maxHold == 0 || r.confines()) {
		err = g.extend(ctx, r.lease)
	}
	if err != nil {
		if lost := g.err(); lost != nil {
			err = notEntered(lost)
		}
		g.abandon(ctx)
		return nil, err
	}
	if r.confines() {
		g.confine(confinement{!r.renew, r.maxHold, time.Now()})
	}
	return newHold(g), nil
}
