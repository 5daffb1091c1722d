package interop

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// commonLatch is a latch with a client of each side.
type commonLatch struct {
	t     *testing.T
	admin *rig.Admin
	name  string
	latch *latchkey.CountDownLatch
	thread
}

func eachCommonLatch(t *testing.T, test func(t *testing.T, g *commonLatch)) {
	t.Helper()
	eachVersion(t, func(t *testing.T, version string) {
		where, name := here(t), rig.Name(t)
		client := where.connect(t, latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: wakeCeiling}})
		test(t, &commonLatch{
			t: t, admin: where.admin, name: name,
			latch: client.NewCountDownLatch(name), thread: where.java(t, version).on("main"),
		})
	})
}

func (g *commonLatch) f(n int) fields {
	return fields{"name": g.name, "n": n, "wait": patience.Milliseconds()}
}

// left compares the counts of both sides.
func (g *commonLatch) left(want int) {
	g.t.Helper()
	got, err := g.latch.Count(within(g.t, soon))
	require.NoError(g.t, err)
	assert.Equal(g.t, want, got, "for Go")
	assert.EqualValues(g.t, want, g.number("latch.count", g.f(0)), "for Java")
}

func (g *commonLatch) set(n int) bool {
	g.t.Helper()
	done, err := g.latch.TrySetCount(within(g.t, soon), n)
	require.NoError(g.t, err)
	return done
}

func (g *commonLatch) count() {
	g.t.Helper()
	_, err := g.latch.CountDown(within(g.t, soon))
	require.NoError(g.t, err)
}

// awaiters starts one awaiter of each side.
func (g *commonLatch) awaiters() (<-chan result[int], <-chan answer) {
	g.t.Helper()
	goWaiter := inBackground(func() (int, error) { return 0, g.latch.Await(within(g.t, patience)) })
	javaWaiter := g.on("waiter").start("latch.await", g.f(0))
	subscribed(g.t, g.admin, "redisson_countdownlatch__channel__{"+g.name+"}", 2)
	return goWaiter, javaWaiter
}

// Both sides see the effect of every operation on a latch by one side.
func TestLatchQueries(t *testing.T) {
	t.Parallel()
	eachCommonLatch(t, func(t *testing.T, g *commonLatch) {
		assert.True(t, g.truth("latch.trySet", g.f(4)))
		assert.False(t, g.set(7), "Java has set it")
		g.left(4)
		g.count()
		g.left(3)
		g.do("latch.countDown", g.f(0))
		g.left(2)
		_, err := g.latch.CountDownAs(within(t, soon), "participant")
		require.NoError(t, err)
		_, err = g.latch.CountDownAs(within(t, soon), "participant")
		require.NoError(t, err)
		g.left(1)
		g.count()
		g.left(0)
		assert.True(t, g.truth("latch.await", g.f(0)))
		require.NoError(t, g.latch.Await(within(t, soon)))

		assert.True(t, g.set(2))
		assert.False(t, g.truth("latch.trySet", g.f(3)), "Go has set it")
		g.left(2)
		g.do("latch.countDown", g.f(0))
		g.do("latch.countDown", g.f(0))
		g.left(0)
		assert.True(t, g.truth("latch.trySet", g.f(1)), "a new round")
		g.left(1)
		assert.True(t, g.truth("latch.delete", g.f(0)))
		assert.Zero(t, g.number("latch.count", g.f(0)))
	})
}

// The last count of either side releases the awaiters of both, round after round.
func TestLatchOpens(t *testing.T) {
	t.Parallel()
	eachCommonLatch(t, func(t *testing.T, g *commonLatch) {
		for round := range 4 {
			require.True(t, g.set(2))
			goWaiter, javaWaiter := g.awaiters()
			last := func() { g.count() }
			if round%2 == 0 {
				g.count()
				last = func() { g.do("latch.countDown", g.f(0)) }
			} else {
				g.do("latch.countDown", g.f(0))
			}
			began := time.Now()
			last()
			got := rig.Await(t, patience, "Go goes on", goWaiter)
			require.NoError(t, got.err)
			assert.Less(t, got.at.Sub(began), wakeLimit)
			a := rig.Await(t, patience, "Java goes on", javaWaiter)
			require.True(t, value[bool](t, a))
			assert.Less(t, a.ended().Sub(began), wakeLimit)
		}
	})
}

// Java opens a latch, which removes it, before a process of this library comes. To that process the
// latch looks as if it was never set. Await passes with UnsetIsOpen only.
func TestGoComesAfterJavaHasOpened(t *testing.T) {
	t.Parallel()
	eachCommonLatch(t, func(t *testing.T, g *commonLatch) {
		assert.True(t, g.truth("latch.trySet", g.f(1)))
		g.do("latch.countDown", g.f(0))
		assert.True(t, g.truth("latch.await", g.f(0)), "Java passes")
		require.ErrorIs(t, g.latch.Await(within(t, soon)), latchkey.ErrNotSet)
		require.NoError(t, g.latch.Await(within(t, soon), latchkey.UnsetIsOpen()))
	})
}

// Once a client of this library has seen the latch closed, all late callers pass.
func TestGoComesLateToALatchThatGoHasSeen(t *testing.T) {
	t.Parallel()
	eachCommonLatch(t, func(t *testing.T, g *commonLatch) {
		assert.True(t, g.truth("latch.trySet", g.f(2)))
		g.count()
		g.do("latch.countDown", g.f(0))
		require.NoError(t, here(t).connect(t).NewCountDownLatch(g.name).Await(within(t, soon)))
	})
}

// When this library deletes a latch, all awaiters are released: ours with an error.
func TestLatchDeleted(t *testing.T) {
	t.Parallel()
	eachCommonLatch(t, func(t *testing.T, g *commonLatch) {
		require.True(t, g.set(2))
		goWaiter, javaWaiter := g.awaiters()
		gone, err := g.latch.Delete(context.Background())
		require.NoError(t, err)
		assert.True(t, gone)
		assert.ErrorIs(t, rig.Await(t, wakeLimit, "Go is told", goWaiter).err, latchkey.ErrGone)
		assert.True(t, value[bool](t, rig.Await(t, wakeLimit, "Java goes on", javaWaiter)))
	})
}

// A deletion by Redisson wakes none of its own awaiters, and here counts as an open latch, because
// it removes the same key as the last count.
func TestLatchDeletedByJava(t *testing.T) {
	t.Parallel()
	eachCommonLatch(t, func(t *testing.T, g *commonLatch) {
		require.True(t, g.set(2))
		goWaiter, javaWaiter := g.awaiters()
		// Redisson looks once more after it has subscribed, and nothing shows when that is over.
		rig.Throughout(t, time.Second, "it is closed", func() error { require.Empty(t, javaWaiter); return nil })
		assert.True(t, g.truth("latch.delete", g.f(0)))
		assert.NoError(t, rig.Await(t, wakeLimit, "Go goes on", goWaiter).err)
		rig.Throughout(t, time.Second, "Java's awaiter waits on", func() error { require.Empty(t, javaWaiter); return nil })
		require.True(t, g.set(1)) // so that the awaiter of Java goes on
		g.count()
		assert.True(t, value[bool](t, rig.Await(t, wakeLimit, "Java goes on", javaWaiter)))
	})
}
