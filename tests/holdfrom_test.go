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

// HoldFrom of a lock finds the hold of this lock in the context, however many others are in
// between, and sends nothing. The context of another lock, of another kind of that name, or of
// another client has none.
func TestHoldFrom(t *testing.T) {
	server, ctx := rig.Shared(), t.Context()
	for _, k := range append(kinds, readKind, multiKind, redKind) {
		t.Run(k.name, func(t *testing.T) {
			tap := rig.NewTap(t, server)
			client, name := connectVia(t, server, tap.Addr()), rig.Name(t)
			lock, pool, between := k.open(client, name), newPermits(t, client, 1), client.NewFencedLock(name+" between")
			assert.Nil(t, lock.HoldFrom(ctx))
			hold := mustLock(t, lock)
			inner := mustLock(t, between)
			permit, err := pool.Acquire(within(t, soon))
			require.NoError(t, err)
			tap.Forget()
			deep := context.WithValue(permit.Context(inner.Context(hold.Context(ctx))), contextKey{}, 1)
			deep, cancel := context.WithTimeout(deep, soon)
			defer cancel()
			assert.Same(t, hold, lock.HoldFrom(deep))
			assert.Same(t, hold, k.open(client, name).HoldFrom(deep), "another handle of the lock")
			assert.Same(t, hold, lock.HoldFrom(context.WithoutCancel(deep)))
			assert.Same(t, inner, between.HoldFrom(deep))
			assert.Nil(t, k.open(client, name+"2").HoldFrom(deep), "another lock")
			assert.Nil(t, k.open(connect(t, server), name).HoldFrom(deep), "another client")
			for _, other := range append(kinds, readKind, multiKind, redKind) {
				if found := other.open(client, name).HoldFrom(deep); found != nil {
					assert.Equal(t, family(k), family(other), other.name)
				}
			}
			assert.Empty(t, tap.Commands())
			mustUnlock(t, inner)
			mustUnlock(t, hold)
			assert.Same(t, hold, lock.HoldFrom(deep), "it is over, and there is no other")
			assert.ErrorIs(t, lock.HoldFrom(deep).Err(), latchkey.ErrNotHeld)
			require.NoError(t, lock.Do(ctx, func(work context.Context) error {
				assert.NoError(t, lock.HoldFrom(work).Err())
				if k.reentrant {
					again, err := lock.TryLock(work)
					require.NoError(t, err)
					nested := again.Context(work)
					assert.Same(t, again, lock.HoldFrom(nested), "the innermost")
					mustUnlock(t, again)
					assert.Same(t, lock.HoldFrom(work), lock.HoldFrom(nested), "the innermost that is still held")
				}
				return nil
			}))
		})
	}
	var none *latchkey.Hold
	require.ErrorIs(t, none.Err(), latchkey.ErrNotHeld)
	assert.Zero(t, none.Token())
	bad := connect(t, server).NewLock("a{")
	assert.Nil(t, bad.HoldFrom(mustLock(t, connect(t, server).NewLock(rig.Name(t))).Context(ctx)))
}

// family is the same for kinds whose holds can enter each other.
func family(k kind) string {
	switch k.name {
	case lockKind.name, fencedKind.name, spinKind.name:
		return lockKind.name
	}
	return k.name
}

// multiKind and redKind are locks that consist of others.
var (
	multiKind = kind{name: "MultiLock", reentrant: true, open: func(c *latchkey.Client, name string) anyLock {
		return latchkey.NewMultiLock(c.NewLock(name+"a"), c.NewLock(name+"b"))
	}}
	redKind = kind{name: "RedLock", reentrant: true, open: func(c *latchkey.Client, name string) anyLock {
		return latchkey.NewRedLock(latchkey.RedLockOptions{}, c.NewLock(name+"c"))
	}}
)

// The holds of members, guests and leaders are found too.
func TestHoldFrom_of_members_guests_and_leaders(t *testing.T) {
	server, name, ctx := rig.Shared(), rig.Name(t), t.Context()
	client := connect(t, server)
	one, two := client.NewFencedLock(name+"1"), client.NewFencedLock(name+"2")
	both := latchkey.NewMultiLock(two, one)
	require.NoError(t, latchkey.NewMultiLock(one, two).Do(ctx, func(ctx context.Context) error {
		hold := both.HoldFrom(ctx)
		require.NoError(t, hold.Err(), "the same members in another order")
		assert.Same(t, hold.Member(name+"2"), two.HoldFrom(ctx))
		assert.Positive(t, one.HoldFrom(ctx).Token())
		assert.Nil(t, latchkey.NewMultiLock(one).HoldFrom(ctx), "another lock")
		assert.Nil(t, latchkey.NewRedLock(latchkey.RedLockOptions{}, one, two).HoldFrom(ctx), "another kind")
		return nil
	}))

	other, hold := connect(t, server).NewFencedLock(name+"1"), mustLock(t, one)
	guest := mustLock(t, other, latchkey.As(hold.Share()))
	assert.Same(t, guest, other.HoldFrom(guest.Context(hold.Context(ctx))))
	assert.Same(t, hold, one.HoldFrom(guest.Context(hold.Context(ctx))))
	assert.Nil(t, one.HoldFrom(latchkey.WithOwner(ctx, hold.Share())), "an owner is no hold")
	mustUnlock(t, guest)
	mustUnlock(t, hold)

	e := client.NewElection(name + "e")
	l := mustLead(t, e, "value")
	assert.Equal(t, l.Term(), e.HoldFrom(mustLock(t, two).Context(l.Context(ctx))).Token())
	assert.Nil(t, e.HoldFrom(ctx))
	mustResign(t, l)
	assert.ErrorIs(t, e.HoldFrom(l.Context(ctx)).Err(), latchkey.ErrNotHeld)

	lost := mustLock(t, other)
	work := lost.Context(ctx)
	_, err := client.ForceUnlock(ctx, name+"1")
	require.NoError(t, err)
	require.ErrorIs(t, lost.Extend(ctx, time.Hour), latchkey.ErrLost)
	assert.Equal(t, lost.Token(), other.HoldFrom(work).Token(), "a late writer has its token")
	assert.ErrorIs(t, other.HoldFrom(work).Err(), latchkey.ErrLost)
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
		permitQueueLength(t, rig.NewAdmin(t, server), s.Name(), 0) // or it is granted the permit before it leaves
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

// When a member of a group is lost, the others are given back a moment later. Until then a call
// with the values of the group's context waits for a member as any other call does: it does not
// re-enter it.
func TestMembersOfALostGroupAreNotEntered(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client, admin := connect(t, server, latchkey.Options{Lease: time.Second}), rig.NewAdmin(t, server)
	mutex, lock := client.NewMutex(name+"a"), client.NewLock(name+"b")
	hold := mustLock(t, latchkey.NewMultiLock(mutex, lock))
	ctx := hold.Context(t.Context())
	admin.Do("DEL", name+"b")
	rig.Await(t, soon, "the loss", ctx.Done())
	next, err := mutex.Lock(context.WithoutCancel(ctx), latchkey.Wait(soon))
	require.NoError(t, err)
	mustUnlock(t, next)
}
