package latchkey

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/inspect"
)

// inspect combines what the members hold, with the labels and notes of the holders.
func (l *compositeLock) inspect(ctx context.Context) (inspect.Inspection, error) {
	return l.inspectBy(func(m member) (inspect.Inspection, error) { return m.inspect(ctx) })
}

// look is inspect without the labels and notes.
func (l *compositeLock) look(ctx context.Context) (inspect.Inspection, error) {
	return l.inspectBy(func(m member) (inspect.Inspection, error) { return m.look(ctx) })
}

// inspectBy combines the inspections of the members.
func (l *compositeLock) inspectBy(look func(member) (inspect.Inspection, error)) (inspect.Inspection, error) {
	whole := inspect.Inspection{Name: l.Name(), Kind: keyspace.KindNone}
	if err := l.fault(); err != nil {
		return whole, fault.Op("inspect", whole.Name, err)
	}
	found := make([]inspect.Inspection, len(l.members))
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

// forceUnlock takes every member from its holder, and reports whether any was held. forceOne does that
// for a lock of one key.
func (l *compositeLock) forceUnlock(ctx context.Context, forceOne forceUnlocker) (bool, error) {
	if err := l.fault(); err != nil {
		return false, fault.Op("force unlock", l.Name(), err)
	}
	held := make([]bool, len(l.members))
	errs := async.Errors(async.Indexes(l.members), func(i int) (err error) {
		held[i], err = l.members[i].forceUnlock(ctx, forceOne)
		return ofMember(i, err)
	})
	if err := errors.Join(errs...); err != nil {
		return slices.Contains(held, true), fault.Op("force unlock", l.Name(), err)
	}
	return slices.Contains(held, true), nil
}
