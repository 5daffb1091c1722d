package tests

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// HoldFrom returns the hold inside Do, and with it the token. It is the innermost one, even inside Do of a permit. A
// hold that is over is returned too, so that the token of an outer lock does not take its place.
func TestHoldFrom(t *testing.T) {
	client, ctx := connect(t, rig.Shared()), t.Context()
	assert.Nil(t, latchkey.HoldFrom(ctx))
	require.ErrorIs(t, latchkey.HoldFrom(ctx).Err(), latchkey.ErrNotHeld)
	assert.Zero(t, latchkey.HoldFrom(ctx).Token())
	outer, inner := client.NewFencedLock(rig.Name(t)), client.NewFencedLock(rig.Name(t)+" inner")
	pool := newPermits(t, client, 1)
	must := func(err error) { t.Helper(); require.NoError(t, err) }
	must(outer.Do(ctx, func(ctx context.Context) error {
		first := latchkey.HoldFrom(ctx)
		assert.Equal(t, outer.Name(), first.Name())
		assert.Positive(t, first.Token())
		assert.Nil(t, latchkey.PermitFrom(ctx))
		must(pool.Do(ctx, func(ctx context.Context) error {
			assert.Same(t, first, latchkey.HoldFrom(ctx), "a permit is no hold")
			return inner.Do(ctx, func(ctx context.Context) error {
				assert.Equal(t, inner.Name(), latchkey.HoldFrom(ctx).Name())
				assert.NotEmpty(t, latchkey.PermitFrom(ctx).ID(), "a hold is no permit")
				return nil
			})
		}))
		hold := mustLock(t, inner)
		mustUnlock(t, hold)
		work := hold.Context(ctx)
		assert.Same(t, hold, latchkey.HoldFrom(work), "also when it is over")
		require.ErrorIs(t, context.Cause(work), latchkey.ErrNotHeld)
		require.ErrorIs(t, latchkey.HoldFrom(work).Err(), latchkey.ErrNotHeld)
		child, cancel := context.WithCancel(context.WithValue(ctx, t, 1))
		defer cancel()
		assert.Same(t, first, latchkey.HoldFrom(child))
		return nil
	}))
	both := latchkey.NewMultiLock(outer, inner)
	must(both.Do(ctx, func(ctx context.Context) error {
		assert.Len(t, latchkey.HoldFrom(ctx).Members(), 2)
		return nil
	}))
}

// Do of a PermitSemaphore keeps the contract of Do of a lock.
func TestPermitDo(t *testing.T) {
	server, ctx := rig.Shared(), t.Context()
	s := newPermits(t, connect(t, server, patient), 1)
	failed := errors.New("failed")
	var id string
	err := s.Do(ctx, func(ctx context.Context) error {
		id = latchkey.PermitFrom(ctx).ID()
		left, err := s.RemainingLease(ctx, id)
		require.NoError(t, err)
		assert.Positive(t, left)
		counts(t, s, 0, 1)
		busy := refused(t, func(wait latchkey.WaitOption) error {
			return s.Do(ctx, func(context.Context) error { t.Error("it is called"); return nil }, wait)
		})
		assert.Contains(t, busy.Error(), `acquire "`+s.Name()+`"`)
		return failed
	})
	assert.Equal(t, failed, err)
	counts(t, s, 1, 0)
	assert.PanicsWithValue(t, "fn", func() { _ = s.Do(ctx, func(context.Context) error { panic("fn") }) })
	counts(t, s, 1, 0)

	other := connect(t, server).NewPermitSemaphore(s.Name())
	err = s.Do(ctx, func(ctx context.Context) error {
		_, err := other.Release(ctx, latchkey.PermitFrom(ctx).ID())
		require.NoError(t, err)
		_ = latchkey.PermitFrom(ctx).Extend(ctx, time.Hour) // learns of the release
		rig.Await(t, soon, "the end of the context", ctx.Done())
		return failed
	})
	require.ErrorIs(t, err, failed)
	require.ErrorIs(t, err, latchkey.ErrLost, "the loss is told")

	err = s.Do(ctx, func(context.Context) error { return nil }, latchkey.Lease(0))
	require.ErrorIs(t, err, latchkey.ErrInvalid)
	var none *latchkey.Permit
	assert.Equal(t, none, latchkey.PermitFrom(ctx))
	require.ErrorIs(t, latchkey.PermitFrom(ctx).Release(ctx), latchkey.ErrNotHeld)
	require.ErrorIs(t, latchkey.PermitFrom(ctx).Err(), latchkey.ErrNotHeld)
	assert.Empty(t, latchkey.PermitFrom(ctx).ID())
}
