package tests

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// guest returns the option to enter a hold. It parses the owner as another process would.
func guest(t *testing.T, hold *latchkey.Hold) latchkey.TryLockOption {
	t.Helper()
	owner, err := latchkey.ParseOwner(hold.Share().String())
	require.NoError(t, err)
	return latchkey.As(owner)
}

// A hand-over: the new process enters, the old one leaves, and nobody gets in between. From then on
// the guest's renewal keeps the hold.
func TestGuest_takes_a_hold_over(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		const lease = 5 * time.Second
		server, name := rig.Shared(), rig.Name(t)
		options := latchkey.Options{Lease: lease}
		maker, taker := connect(t, server, options), connect(t, server, options)
		other := k.open(connect(t, server, options), name)
		first := mustLock(t, k.open(maker, name))
		second := mustLock(t, k.open(taker, name), guest(t, first))
		require.Equal(t, first.Owner(), second.Owner())
		require.Equal(t, first.Token(), second.Token(), "one hold, one token")
		mustUnlock(t, first)
		waiting := lockInBackground(within(t, time.Minute), other)
		renewedSince(t, time.Now().Add(lease/10), lease, second) // later than it was acquired
		require.Empty(t, waiting, "the lock was given away while the guest held it")
		mustUnlock(t, second)
		next := rig.Await(t, soon, "the next holder", waiting)
		require.NoError(t, next.err)
		mustUnlock(t, next.hold)
	}, reentrant, guests)
}

// The parts of maker and guest are counted separately, including re-entries.
func TestGuest_and_maker_count_apart(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	maker, taker := connect(t, server), connect(t, server)
	a1 := mustLock(t, maker.NewLock(name))
	b1 := mustLock(t, taker.NewLock(name), guest(t, a1))
	a2 := mustLock(t, maker.NewLock(name), latchkey.As(a1.Share()))
	b2 := mustLock(t, taker.NewLock(name), guest(t, a1))
	count := func() int {
		state, err := maker.Inspect(within(t, soon), name)
		require.NoError(t, err)
		require.Len(t, state.Holders, 1)
		return state.Holders[0].Count
	}
	require.Equal(t, 4, count())
	require.Equal(t, 2, countOf(a1))
	require.Equal(t, 2, countOf(b1))
	for left, hold := range []*latchkey.Hold{b1, a2, b2} {
		mustUnlock(t, hold)
		require.Equal(t, 3-left, count())
	}
	mustUnlock(t, a1)
	locked, err := isLocked(within(t, soon), maker.NewLock(name))
	require.NoError(t, err)
	require.False(t, locked)
}

// A guest whose client is closed leaves the maker's part of the hold as it is.
func TestGuest_that_closes_takes_only_its_part(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	maker := connect(t, server)
	taker, closeTaker, err := dial(server, server.Addr(), latchkey.Options{})
	require.NoError(t, err)
	first := mustLock(t, maker.NewLock(name))
	second := mustLock(t, taker.NewLock(name), guest(t, first))
	require.NoError(t, closeTaker(within(t, soon)))
	require.ErrorIs(t, second.Err(), latchkey.ErrClosed)
	_, err = connect(t, server).NewLock(name).TryLock(within(t, soon))
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	mustUnlock(t, first)
}

// An owner in the context combines acquisitions by any goroutine into one hold.
func TestWithOwner_names_a_task(t *testing.T) {
	client, name := connect(t, rig.Shared()), rig.Name(t)
	lock := client.NewLock(name)
	task := latchkey.WithOwner(within(t, soon), client.NewOwner())
	first, err := lock.Lock(task)
	require.NoError(t, err)
	entered := rig.Await(t, soon, "the same task in another goroutine", lockInBackground(task, lock))
	require.NoError(t, entered.err)
	require.Equal(t, 2, countOf(first))
	_, err = lock.TryLock(latchkey.WithOwner(task, client.NewOwner()))
	require.ErrorIs(t, err, latchkey.ErrNotAcquired, "another task")
	_, err = lock.TryLock(latchkey.WithOwner(task, latchkey.Owner{}))
	require.ErrorIs(t, err, latchkey.ErrNotAcquired, "no task")
	mustUnlock(t, first)
	mustUnlock(t, entered.hold)
	again, err := lock.TryLock(task)
	require.NoError(t, err)
	require.NotEqual(t, first.Owner(), again.Owner(), "no owner is used twice in Redis")
	mustUnlock(t, again)
}

// Two goroutines of one task that arrive together get a hold and its re-entry.
func TestWithOwner_arriving_together(t *testing.T) {
	server, name := rig.Shared(), rig.Name(t)
	client := connect(t, server)
	block := mustLock(t, connect(t, server).NewLock(name))
	task := latchkey.WithOwner(within(t, soon), client.NewOwner())
	lock := client.NewLock(name)
	one, two := lockInBackground(task, lock), lockInBackground(task, lock)
	_, err := lock.TryLock(task)
	require.ErrorIs(t, err, latchkey.ErrNotAcquired, "a try does not wait for the others")
	mustUnlock(t, block)
	a, b := rig.Await(t, soon, "one", one), rig.Await(t, soon, "the other", two)
	require.NoError(t, a.err)
	require.NoError(t, b.err)
	require.Equal(t, a.hold.Owner(), b.hold.Owner())
	mustUnlock(t, a.hold)
	require.NoError(t, b.hold.Err())
	mustUnlock(t, b.hold)
	require.ErrorIs(t, b.hold.Unlock(context.Background()), latchkey.ErrNotHeld)
}
