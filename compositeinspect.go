package latchkey

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
)

// IsLocked reports whether as many members are held on their servers as the lock needs: all of a
// [MultiLock], more than half of a [RedLock], by any owner. The answer may be out of date when it
// arrives. Don't branch on it; acquire the lock.
//
// The errors are those of Inspect.
func (l *compositeLock) IsLocked(ctx context.Context) (bool, error) {
	i, err := l.look(ctx)
	return i.Locked(), err
}

// RemainingLease returns how long enough members stay held if nobody renews them: all of a
// [MultiLock], more than half of a [RedLock]. It queries the servers of all members. The result
// is 0 if too few are held.
//
// The errors are those of Inspect.
func (l *compositeLock) RemainingLease(ctx context.Context) (time.Duration, error) {
	i, err := l.look(ctx)
	return i.TTL, err
}

// Inspect queries the servers of all members, and lists the holders of all members together. Kind
// is [KindMulti] or [KindRed] if enough members are held, all of a [MultiLock] or more than half
// of a [RedLock], and [KindNone] otherwise. The answer may be out of date when it arrives.
//
// If the answer depends on members that could not be inspected, or if too few could be, the error
// joins theirs. The error matches ErrUnavailable if their servers could not be reached within the
// RetryBudget of their clients or before ctx ended, ErrClosed, ErrWrongKind, ErrInvalid if the
// members are unusable, or is a *rueidis.RedisError if a server refuses.
func (l *compositeLock) Inspect(ctx context.Context) (Inspection, error) {
	return asInspection(l.inspect(ctx))
}

// inspect combines what the members hold, with the labels and notes of the holders.
func (l *compositeLock) inspect(ctx context.Context) (inspection, error) {
	return l.inspectBy(func(m member) (inspection, error) { return m.inspect(ctx) })
}

// look is inspect without the labels and notes.
func (l *compositeLock) look(ctx context.Context) (inspection, error) {
	return l.inspectBy(func(m member) (inspection, error) { return m.look(ctx) })
}

// inspectBy combines the inspections of the members.
func (l *compositeLock) inspectBy(look func(member) (inspection, error)) (inspection, error) {
	whole := inspection{Name: l.Name(), Kind: keyspace.KindNone}
	if err := l.fault(); err != nil {
		return whole, fault.Op("inspect", whole.Name, err)
	}
	found := make([]inspection, len(l.members))
	errs := async.Errors(async.Indexes(l.members), func(i int) (err error) {
		found[i], err = look(l.members[i])
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
		return whole, fault.Op("inspect", whole.Name, errs...)
	}
	if len(times) >= l.need {
		whole.Kind, whole.TTL = l.kind, lastedBy(l.need, times)
	}
	return whole, nil
}

// ForceUnlock takes every member from its holder, and reports whether any was held. It removes
// exactly the owners that it saw: a hold that begins after that is not touched.
//
// ForceUnlock does not wait for the former holders. Those of this library learn of it at their
// next renewal, a third of their lease later at most, and their holds end with ErrLost. Until
// then they keep working, at the same time as the next holder.
//
// ForceUnlock tries every member. The error joins those of the members that failed: those of
// Inspect, and ErrUnknownOutcome for a removal that was sent and got no answer. You may repeat
// the call.
func (l *compositeLock) ForceUnlock(ctx context.Context) (bool, error) {
	if err := l.fault(); err != nil {
		return false, fault.Op("force unlock", l.Name(), err)
	}
	held := make([]bool, len(l.members))
	errs := async.Errors(async.Indexes(l.members), func(i int) (err error) {
		held[i], err = l.members[i].ForceUnlock(ctx)
		return ofMember(i, err)
	})
	if err := errors.Join(errs...); err != nil {
		return slices.Contains(held, true), fault.Op("force unlock", l.Name(), err)
	}
	return slices.Contains(held, true), nil
}
