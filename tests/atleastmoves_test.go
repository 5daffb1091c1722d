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

// A lock with AtLeast stays taken on the server that takes the place of its master, and in a slot
// that migrates.

// staysTaken checks that a lock that was released is taken for its former owner, and that nobody
// else acquires it.
func (at stayTaken) staysTaken(t *testing.T, owner latchkey.Owner, lock anyLock) {
	t.Helper()
	at.stays(t)
	_, err := lock.TryLock(within(t, soon))
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	i, err := lock.Inspect(within(t, soon))
	require.NoError(t, err)
	require.Len(t, i.Holders, 1)
	assert.Equal(t, owner, i.Holders[0].Owner)
	assert.True(t, i.Holders[0].Kept)
	at.ends(t)
}

// waitsFor acquires a lock in the background, and releases it at once. check checks that it was not
// acquired before its time.
func (at stayTaken) waitsFor(t *testing.T, lock anyLock) (check func()) {
	t.Helper()
	ctx, done := within(t, time.Minute), make(chan acquisition, 1)
	go func() {
		hold, err := lock.Lock(ctx)
		got := acquisition{hold, err, time.Now()}
		if err == nil {
			got.err = hold.Unlock(context.Background()) // another may wait behind it
		}
		done <- got
	}()
	return func() {
		t.Helper()
		got := rig.Await(t, time.Minute, "the waiter", done)
		require.NoError(t, got.err)
		assert.GreaterOrEqual(t, got.at.Sub(at.before), at.d, "not before")
	}
}

// The next master knows a lock that was released before the failover, and one that is released
// after it. Waiters acquire it there when the time is over, and not before.
func TestAtLeastOutlivesAFailover(t *testing.T) {
	t.Parallel()
	const d = 5 * time.Second
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		f := newLockFailover(t, k)
		holder, other := f.connect(f.tap()), f.connect(f.tap())
		released, before := take(t, f.master, k.open(holder, f.name+":before"), time.Hour)
		held, after := take(t, f.master, k.open(holder, f.name+":after"), time.Hour)
		short, soonFree := take(t, f.master, k.open(holder, f.name+":short"), d)
		ofOther, ofHolder := soonFree.waitsFor(t, k.open(other, short.Name())), soonFree.waitsFor(t, k.open(holder, short.Name()))
		owner := held.Owner()
		mustUnlock(t, released)
		mustUnlock(t, short)
		f.fallBehind()
		f.over()
		before.admin, after.admin = f.next, f.next
		before.staysTaken(t, released.Owner(), k.open(other, released.Name()))
		mustUnlock(t, held)
		after.staysTaken(t, owner, k.open(other, held.Name()))
		ofOther()
		ofHolder()
	})
}

// A slot that stays half moved for longer than the lease does not free a lock that stays taken, and
// neither does the end of the move.
func TestMigration_of_locks_that_stay_taken(t *testing.T) {
	t.Parallel()
	rig.Long(t)
	const lease = 4 * time.Second
	eachHalf(t, func(t *testing.T, cluster *rig.Cluster, which func(key string) bool) {
		client := connectCluster(t, cluster, latchkey.Options{Lease: lease, RetryBudget: lease})
		other := connectCluster(t, cluster, latchkey.Options{Lease: time.Minute, RetryBudget: soon}) // it may release during the move
		hasty := connectCluster(t, cluster, latchkey.Options{Lease: lease, RetryBudget: 100 * time.Millisecond})
		tag, admin := "{"+rig.Name(t)+"}", rig.NewAdmin(t, cluster.Server())
		type taken struct {
			stayTaken
			kind  kind
			hold  *latchkey.Hold
			owner latchkey.Owner
		}
		takeAll := func(what string, d time.Duration) (all []taken) {
			for _, k := range kinds {
				hold, at := take(t, admin, k.open(client, tag+":"+k.name+what), d)
				all = append(all, taken{at, k, hold, hold.Owner()})
			}
			return all
		}
		released, held, short := takeAll("released", time.Hour), takeAll("held", time.Hour), takeAll("short", 2*lease)
		var waiters []func()
		for _, each := range short {
			waiters = append(waiters, each.waitsFor(t, each.kind.open(other, each.name)))
			mustUnlock(t, each.hold)
		}
		for _, each := range released {
			mustUnlock(t, each.hold)
		}
		moveKeys, finish := cluster.BeginMove(tag)
		moveKeys(which)
		for start := time.Now(); time.Since(start) < 3*lease/2; {
			for _, each := range append(released, held...) {
				_, err := each.kind.open(hasty, each.name).TryLock(within(t, soon))
				if !errors.Is(err, latchkey.ErrUnavailable) { // the slot is being moved
					require.ErrorIs(t, err, latchkey.ErrNotAcquired, each.name)
				}
			}
			rest(lease / 4)
		}
		moveKeys(rig.EveryKey)
		finish()
		for _, each := range held {
			require.NoError(t, each.hold.Unlock(context.Background()), each.name)
		}
		for _, each := range append(released, held...) {
			each.staysTaken(t, each.owner, each.kind.open(other, each.name))
		}
		for _, check := range waiters {
			check()
		}
	})
}
