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

// The queries of both sides see every operation on a semaphore by one side.
func TestSemaphoreQueries(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, version string) {
		where, name, ctx := here(t), rig.Name(t), within(t, soon)
		s := where.connect(t).NewSemaphore(name)
		j := where.java(t, version).on("main")
		f := func(n int) fields { return fields{"name": name, "n": n} }
		available := func(want int) {
			t.Helper()
			got, err := s.Inspect(ctx)
			require.NoError(t, err)
			assert.Equal(t, want, got.Available, "for Go")
			assert.EqualValues(t, want, j.number("semaphore.available", f(0)), "for Java")
		}
		set := func(n int) bool {
			t.Helper()
			done, err := s.TrySetPermits(ctx, n)
			require.NoError(t, err)
			return done
		}

		assert.Zero(t, j.number("semaphore.available", f(0)))
		assert.True(t, j.truth("semaphore.trySet", f(5)))
		assert.False(t, set(7), "Java has set it")
		available(5)
		require.NoError(t, s.AcquireN(ctx, 2))
		available(3)
		j.do("semaphore.acquire", f(1))
		available(2)
		assert.ErrorIs(t, s.TryAcquireN(ctx, 3), latchkey.ErrNotAcquired)
		assert.False(t, j.truth("semaphore.try", f(3)))
		require.NoError(t, s.Release(ctx))
		available(3)
		j.do("semaphore.release", f(2))
		available(5)
		j.do("semaphore.add", f(3))
		available(8)
		require.NoError(t, s.AddPermits(ctx, -4))
		available(4)
		assert.ErrorIs(t, s.SetPermits(ctx, 6), latchkey.ErrNotSet, "the total of a semaphore that Redisson made is not known")
		drained, err := s.Drain(ctx)
		require.NoError(t, err)
		assert.Equal(t, 4, drained)
		available(0)
		j.do("semaphore.add", f(-2)) // a debt
		available(-2)
		j.do("semaphore.release", f(5))
		assert.EqualValues(t, 3, j.number("semaphore.drain", f(0)))
		available(0)
		assert.True(t, j.truth("semaphore.delete", f(0)))
		none, err := s.Inspect(ctx)
		require.NoError(t, err)
		assert.Equal(t, latchkey.KindNone, none.Kind)
		assert.True(t, set(1))
		assert.False(t, j.truth("semaphore.trySet", f(9)), "Go has set it")
		available(1)
		gone, err := s.Delete(ctx)
		require.NoError(t, err)
		assert.True(t, gone)
		assert.False(t, j.truth("semaphore.delete", f(0)))
	})
}

// Every operation of one side that makes permits available wakes a waiter of the other.
func TestSemaphoreWakers(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, version string) {
		where := here(t)
		client := where.connect(t, latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: wakeCeiling}})
		j := where.java(t, version)
		for what, wake := range map[string]func(s *latchkey.Semaphore, name string) error{
			"Go release": func(s *latchkey.Semaphore, _ string) error { return s.ReleaseN(t.Context(), 2) },
			"Go add":     func(s *latchkey.Semaphore, _ string) error { return s.AddPermits(t.Context(), 2) },
			"Go set":     func(s *latchkey.Semaphore, _ string) error { return s.SetPermits(t.Context(), 3) },
			"Java release": func(_ *latchkey.Semaphore, name string) error {
				return j.on("waker").try("semaphore.release", fields{"name": name, "n": 2}).err()
			},
			"Java add": func(_ *latchkey.Semaphore, name string) error {
				return j.on("waker").try("semaphore.add", fields{"name": name, "n": 2}).err()
			},
		} {
			name := rig.Name(t)
			s := client.NewSemaphore(name)
			_, err := s.TrySetPermits(t.Context(), 1)
			require.NoError(t, err)
			require.NoError(t, s.Acquire(t.Context()))
			goWaiter := inBackground(func() (int, error) { return 0, s.Acquire(within(t, patience)) })
			javaWaiter := j.on("waiter").start("semaphore.acquire", fields{"name": name})
			subscribed(t, where.admin, "redisson_sc:{"+name+"}", 2)
			began := time.Now()
			require.NoError(t, wake(s, name), what)
			got := rig.Await(t, patience, what+" wakes Go", goWaiter)
			require.NoError(t, got.err)
			assert.Less(t, got.at.Sub(began), wakeLimit, "%s wakes Go", what)
			a := rig.Await(t, patience, what+" wakes Java", javaWaiter)
			require.NoError(t, a.err())
			assert.Less(t, a.ended().Sub(began), wakeLimit, "%s wakes Java", what)
		}
	})
}

// A debt that Java makes is announced with a negative number, and waiters of this library keep
// waiting.
func TestDebtIsNoWakeUp(t *testing.T) {
	t.Parallel()
	eachVersion(t, func(t *testing.T, version string) {
		where, name := here(t), rig.Name(t)
		s := where.connect(t, latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: wakeCeiling}}).NewSemaphore(name)
		j := where.java(t, version).on("main")
		j.do("semaphore.trySet", fields{"name": name, "n": 0})
		waiter := inBackground(func() (int, error) { return 0, s.Acquire(within(t, patience)) })
		subscribed(t, where.admin, "redisson_sc:{"+name+"}", 1)
		j.do("semaphore.add", fields{"name": name, "n": -2})
		require.NoError(t, s.ReleaseN(context.Background(), 2)) // pays the debt
		require.Empty(t, waiter)
		j.do("semaphore.release", fields{"name": name})
		require.NoError(t, rig.Await(t, wakeLimit, "the waiter", waiter).err)
	})
}
