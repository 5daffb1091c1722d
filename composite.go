package latchkey

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// compositeLock is what MultiLock and RedLock share: members, and how many of them have to be
// held.
type compositeLock struct {
	kind    Kind
	members []member
	need    int
	invalid error
	// run acquires as many members as are needed.
	run func(ctx context.Context, r *request, settings []setting) (*Hold, error)
}

// Name returns the kind and the names of the members, such as "multi(a, b)".
func (l *compositeLock) Name() string {
	names := make([]string, len(l.members))
	for i, m := range l.members {
		names[i] = m.Name()
	}
	return string(l.kind) + "(" + strings.Join(names, ", ") + ")"
}

// acquire checks the request, bounds it and has it done.
func (l *compositeLock) acquire(ctx context.Context, verb string, waits bool, settings []setting) (*Hold, error) {
	r, err := newRequest(DefaultLease, waits, settings)
	switch {
	case l.fault() != nil:
		err = l.fault()
	case err == nil && !r.by.IsZero():
		err = invalid("By does not apply to several locks: owners of different clients have nothing in common")
	}
	if err != nil {
		return nil, fail(verb, l.Name(), err)
	}
	ctx, cancel := r.bound(ctx)
	defer cancel()
	h, err := l.run(ctx, &r, forMembers(settings))
	if err != nil {
		return nil, fail(verb, l.Name(), explain(err)...)
	}
	return h, nil
}

// forMembers are the settings for each member: the wait is the whole's.
func forMembers(settings []setting) []setting {
	return slices.DeleteFunc(slices.Clone(settings), func(s setting) bool { return s.kind == settingWait })
}

// hopeless reports whether waiting cannot mend what came of a member.
func hopeless(err error) bool {
	return !ofContext(err) && (isFinal(err) || errors.Is(err, errClientClosed))
}

// cutShort is the error of a step that began then, if the time of the call ends in it: what
// the step before met, unless this one has heard more, or had its time to.
func cutShort(ctx context.Context, began time.Time, err, before error) error {
	if ctx.Err() != nil && before != nil && time.Since(began) < cutOff && (bare(err) == nil || incomplete(err)) {
		return withContextEnd(ctx, before)
	}
	return withContextEnd(ctx, err)
}

// IsLocked asks the servers of all members whether as many of them are held as the lock
// needs: all of a [MultiLock], more than half of a [RedLock], whoever holds them. The answer
// may be out of date when it arrives. Don't branch on it; acquire the lock.
//
// The errors are those of Inspect.
func (l *compositeLock) IsLocked(ctx context.Context) (bool, error) {
	i, err := l.Inspect(ctx)
	return i.Locked(), err
}

// RemainingLease asks the servers how long enough members stay held if nobody renews them: all
// of a [MultiLock], more than half of a [RedLock]. It is 0 if too few are held.
//
// The errors are those of Inspect.
func (l *compositeLock) RemainingLease(ctx context.Context) (time.Duration, error) {
	i, err := l.Inspect(ctx)
	return i.TTL, err
}

// Inspect asks the servers of all members who holds them, and lists the holders of all of them
// together. Kind is [KindMulti] or [KindRed] if enough members are held, all of a [MultiLock] or
// more than half of a [RedLock], and [KindNone] otherwise. The answer may be out of date when it
// arrives.
//
// If the answer depends on members that could not be inspected, or if too few could be, the
// error joins theirs. The error matches ErrUnavailable if their servers could not be asked
// within the RetryBudget of their clients or until ctx ended, ErrClosed, ErrWrongKind, ErrInvalid
// if the members cannot be used, or is a *rueidis.RedisError if a server refuses.
func (l *compositeLock) Inspect(ctx context.Context) (Inspection, error) {
	whole := Inspection{Name: l.Name(), Kind: KindNone}
	if err := l.fault(); err != nil {
		return whole, fail("inspect", whole.Name, err)
	}
	found := make([]Inspection, len(l.members))
	errs := atOnce(indexes(l.members), func(i int) (err error) {
		found[i], err = l.members[i].Inspect(ctx)
		return ofMember(i, err)
	})
	var times []time.Duration
	failed := 0
	for i, each := range found {
		whole.Holders = append(whole.Holders, each.Holders...)
		switch {
		case errs[i] != nil:
			failed++
		case each.Locked():
			times = append(times, each.TTL)
		}
	}
	if few := failed > len(l.members)-l.need; few || len(times) < l.need && len(times)+failed >= l.need {
		return whole, fail("inspect", whole.Name, errs...)
	}
	slices.SortFunc(times, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	if len(times) >= l.need {
		whole.Kind, whole.TTL = l.kind, times[l.need-1]
	}
	return whole, nil
}

// ForceUnlock frees every member whoever holds it, and reports whether any was held. It
// removes exactly the owners that it saw: a hold that begins after it has looked is not touched.
//
// The former holders are not asked. Those of this library learn of it at their next renewal,
// a third of their lease later at most, and their holds end with ErrLost. Until then they work
// on, beside whoever acquires.
//
// Every member is tried. The error joins those of the members that failed: those of Inspect, and
// ErrUnknownOutcome for a removal that was sent and not answered. It may be repeated.
func (l *compositeLock) ForceUnlock(ctx context.Context) (bool, error) {
	if err := l.fault(); err != nil {
		return false, fail("force unlock", l.Name(), err)
	}
	held := make([]bool, len(l.members))
	errs := atOnce(indexes(l.members), func(i int) (err error) {
		held[i], err = l.members[i].ForceUnlock(ctx)
		return ofMember(i, err)
	})
	if err := errors.Join(errs...); err != nil {
		return slices.Contains(held, true), fail("force unlock", l.Name(), err)
	}
	return slices.Contains(held, true), nil
}
