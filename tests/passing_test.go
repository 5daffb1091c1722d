package tests

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// A client passes a lock that several of its goroutines want among them in memory.

// An Unlock passes the lock to the goroutine that has waited longest, and nothing is sent. The
// released hold is over, as after any other release.
func TestPassing_sends_nothing(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		c := newHotLock(t, k, longTurn)
		var owner latchkey.Owner
		first, next := c.pass(t, func(first *latchkey.Hold) { owner = first.Owner() })
		assert.Equal(t, owner, next.Owner(), "the server sees one owner")
		assert.ErrorIs(t, first.Err(), latchkey.ErrNotHeld)
		assert.ErrorIs(t, first.Unlock(t.Context()), latchkey.ErrNotHeld)
		assert.ErrorIs(t, first.Extend(t.Context(), time.Minute), latchkey.ErrNotHeld)
		assert.Zero(t, first.ValidFor())
		assert.Zero(t, countOf(first))
		assert.NoError(t, next.Err())
		assert.Equal(t, 1, countOf(next))
		rig.Eventually(t, soon, "the whole lease", lasts(next, defaultLease/2))
		mustUnlock(t, next)
		require.NoError(t, free(rig.NewAdmin(t, rig.Shared()), c.name)())
	}, passes)
}

// A lock that the goroutines of a client contend for costs the server next to nothing.
func TestPassing_of_a_hot_lock(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind) {
		c := newHotLock(t, k, longTurn)
		hot := contention{
			lock: c.lock, section: rig.NewSection(rig.Shared().Raw(t), c.name),
			workers: 8, passes: 40,
		}
		require.NoError(t, hot.run(within(t, time.Minute)))
		hot.section.Verify(t, 320)
		t.Logf("%d commands for %v", len(c.sent()), hot.tally)
		assert.Less(t, len(c.sent()), 160, "a quarter of what 320 holds cost that are not passed on")
	}, passes)
}

// However many goroutines of one client want a lock all the time, another client gets it.
func TestPassing_ends_with_the_turn(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		name := rig.Name(t)
		busy, other := k.open(connect(t, rig.Shared()), name), k.open(connect(t, rig.Shared()), name)
		keepBusy(t, 4, busy)
		longest := time.Duration(0)
		for range 10 {
			asked := time.Now()
			hold := mustLock(t, other)
			longest = max(longest, time.Since(asked))
			mustUnlock(t, hold)
		}
		t.Logf("the longest wait: %v", longest)
	}, passes)
}

// A client with a negative turn passes nothing on.
func TestPassing_can_be_switched_off(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, k kind) {
		c := newHotLock(t, k, latchkey.Options{Tuning: latchkey.Tuning{Turn: -1}})
		first, waiting := c.hold(t, func() <-chan acquisition { return lockInLine(within(t, soon), t, c.lock) })
		mustUnlock(t, first.hold)
		next := rig.Await(t, soon, "the next hold", waiting)
		require.NoError(t, next.err)
		assert.Len(t, c.sent(), 1, "a release that hands the lock to the next owner")
		mustUnlock(t, next.hold)
	}, passes)
}

// A hold is not passed on if the next waiter could notice that it is not the first of its owner, or
// would get less time than it requested.
func TestPassing_of_what_is_not_clean(t *testing.T) {
	t.Parallel()
	for what, is := range map[string]struct {
		first, next []latchkey.LockOption
		during      func(t *testing.T, c hotLock, first *latchkey.Hold)
	}{
		"the owner is shared": {during: func(_ *testing.T, _ hotLock, first *latchkey.Hold) { _ = first.Share() }},
		"a re-entry has shared the owner": {during: func(t *testing.T, c hotLock, first *latchkey.Hold) {
			t.Helper()
			inner := mustReenter(t, first, c.lock)
			_ = inner.Share()
			mustUnlock(t, inner)
		}},
		"a re-entry is over, and shares the owner": {during: func(t *testing.T, c hotLock, first *latchkey.Hold) {
			t.Helper()
			inner := mustReenter(t, first, c.lock)
			mustUnlock(t, inner)
			_ = inner.Share()
		}},
		"a guest": {during: func(t *testing.T, c hotLock, first *latchkey.Hold) {
			t.Helper()
			mustUnlock(t, mustLock(t, connect(t, rig.Shared()).NewLock(c.name), guest(t, first)))
		}},
		"a limit":            {first: []latchkey.LockOption{latchkey.MaxHold(time.Minute)}},
		"a limit is asked":   {next: []latchkey.LockOption{latchkey.MaxHold(time.Minute)}},
		"a lease":            {first: []latchkey.LockOption{latchkey.Lease(time.Minute)}},
		"a lease is asked":   {next: []latchkey.LockOption{latchkey.Lease(time.Minute)}},
		"the lease is other": {[]latchkey.LockOption{latchkey.Lease(time.Minute)}, []latchkey.LockOption{latchkey.Lease(time.Hour)}, nil},
		"the lease is longer": {during: func(t *testing.T, _ hotLock, first *latchkey.Hold) {
			t.Helper()
			require.NoError(t, first.Extend(t.Context(), time.Hour))
		}},
		"much of the lease is over": {
			[]latchkey.LockOption{latchkey.Lease(10 * time.Second)}, []latchkey.LockOption{latchkey.Lease(10 * time.Second)},
			func(*testing.T, hotLock, *latchkey.Hold) { rest(1500 * time.Millisecond) },
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newHotLock(t, lockKind, longTurn)
			first, waiting := c.hold(t, func() <-chan acquisition {
				return lockInLine(within(t, soon), t, c.lock, is.next...)
			}, is.first...)
			if is.during != nil {
				is.during(t, c, first.hold)
			}
			c.tap.Forget()
			mustUnlock(t, first.hold)
			next := rig.Await(t, soon, "the next hold", waiting)
			require.NoError(t, next.err)
			require.NotEmpty(t, c.sent())
			mustUnlock(t, next.hold)
		})
	}
}

// When several holds share a lease, the rest of it is long enough for each of them.
func TestPassing_of_fixed_leases(t *testing.T) {
	t.Parallel()
	const lease = time.Hour
	c := newHotLock(t, lockKind, longTurn)
	for range 5 {
		first, waiting := c.hold(t, func() <-chan acquisition {
			return lockInLine(within(t, soon), t, c.lock, latchkey.Lease(lease))
		}, latchkey.Lease(lease))
		mustUnlock(t, first.hold)
		next := rig.Await(t, soon, "the next hold", waiting)
		require.NoError(t, next.err)
		rig.Eventually(t, soon, "the lease that was asked for", lasts(next.hold, lease*8/10))
		require.LessOrEqual(t, next.hold.ValidFor(), lease)
		mustUnlock(t, next.hold)
	}
}

// While a re-entry lasts, nobody else gets the lock, whichever hold is released first.
func TestPassing_while_entered(t *testing.T) {
	t.Parallel()
	c := newHotLock(t, lockKind, longTurn)
	first, waiting := c.hold(t, func() <-chan acquisition { return lockInLine(within(t, soon), t, c.lock) })
	inner := mustReenter(t, first.hold, c.lock)
	mustUnlock(t, first.hold)
	require.NoError(t, inner.Err())
	_, err := c.lock.TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	select {
	case <-waiting:
		t.Fatal("two are inside")
	default:
	}
	mustUnlock(t, inner)
	next := rig.Await(t, soon, "the next hold", waiting)
	require.NoError(t, next.err)
	mustUnlock(t, next.hold)
}
