package group

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

// Inspect combines what the members hold, with the labels and notes of the holders.
func (l *Lock) Inspect(ctx context.Context) (inspect.Object, error) {
	whole := inspect.Object{Name: l.Name(), Kind: keyspace.KindNone}
	if err := l.Fault(); err != nil {
		return whole, fault.Op("inspect", whole.Name, err)
	}
	found := make([]inspect.Object, len(l.Members))
	errs := async.Errors(async.Indexes(l.Members), func(i int) (err error) {
		found[i], err = l.Members[i].Inspect(ctx)
		return ofMember(i, err)
	})
	var times []time.Duration
	failed := 0
	for i, each := range found {
		whole.Holders = append(whole.Holders, each.Holders...)
		whole.HolderCount += each.HolderCount
		switch {
		case errs[i] != nil:
			failed++
		case each.Locked():
			times = append(times, each.TTL)
		}
	}
	if few := failed > len(l.Members)-l.need; few || len(times) < l.need && len(times)+failed >= l.need {
		return whole, fault.Op("inspect", whole.Name, errs...)
	}
	if len(times) >= l.need {
		whole.Kind, whole.TTL = l.kind, lastedBy(l.need, times)
	}
	return whole, nil
}

// ForceUnlock takes every member from its holder, and reports whether any was held. forceOne does
// that for a lock of one key.
func (l *Lock) ForceUnlock(ctx context.Context, forceOne forceUnlocker) (bool, error) {
	if err := l.Fault(); err != nil {
		return false, fault.Op("force unlock", l.Name(), err)
	}
	held := make([]bool, len(l.Members))
	errs := async.Errors(async.Indexes(l.Members), func(i int) (err error) {
		held[i], err = l.Members[i].ForceUnlock(ctx, forceOne)
		return ofMember(i, err)
	})
	if err := errors.Join(errs...); err != nil {
		return slices.Contains(held, true), fault.Op("force unlock", l.Name(), err)
	}
	return slices.Contains(held, true), nil
}
