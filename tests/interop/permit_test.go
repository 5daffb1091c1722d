package interop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// commonPermits is a semaphore whose permits have leases, with a client of each side.
type commonPermits struct {
	t      *testing.T
	admin  *rig.Admin
	name   string
	client *latchkey.Client
	s      *latchkey.PermitSemaphore
	thread
}

// defaultLease is the lease of both libraries if a program sets none.
const defaultLease = 30 * time.Second

func eachCommonPermits(t *testing.T, options latchkey.Options, test func(t *testing.T, b *commonPermits)) {
	t.Helper()
	eachVersion(t, func(t *testing.T, version string) {
		where, name := here(t), rig.Name(t)
		client := where.connect(t, options)
		test(t, &commonPermits{
			t: t, admin: where.admin, name: name, client: client,
			s: client.NewPermitSemaphore(name), thread: where.java(t, version).on("main"),
		})
	})
}

// f returns the fields of a command, from pairs of name and value.
func (b *commonPermits) f(pairs ...any) fields {
	f := fields{"name": b.name}
	for i := 0; i < len(pairs); i += 2 {
		f[pairs[i].(string)] = pairs[i+1]
	}
	return f
}

// counts compares the queries of both sides.
func (b *commonPermits) counts(available, acquired int) {
	b.t.Helper()
	stats, err := b.s.Inspect(within(b.t, soon))
	require.NoError(b.t, err)
	got := map[string]int{"available": stats.Available, "acquired": stats.HolderCount, "permits": stats.Total}
	for what, want := range map[string]int{"available": available, "acquired": acquired, "permits": available + acquired} {
		assert.Equal(b.t, want, got[what], "%s for Go", what)
		assert.EqualValues(b.t, want, b.number("permit."+what, b.f()), "%s for Java", what)
	}
}

func (b *commonPermits) acquire(options ...latchkey.TryPermitOption) *latchkey.Permit {
	b.t.Helper()
	permit, err := b.s.TryAcquire(within(b.t, soon), options...)
	require.NoError(b.t, err)
	return permit
}

func (b *commonPermits) javaAcquire(n int, lease time.Duration) []string {
	b.t.Helper()
	f := b.f("n", n)
	if lease != 0 {
		f["lease"] = lease.Milliseconds()
	}
	return value[[]string](b.t, b.do("permit.acquire", f))
}

// left compares what both sides report as the rest of a permit's lease. Redisson before 3.41 cannot
// report it.
func (b *commonPermits) left(id string, want time.Duration) {
	b.t.Helper()
	got, err := b.s.RemainingLease(within(b.t, soon), id)
	require.NoError(b.t, err)
	javas := got
	if !before(b.t, b.jvm.version, 3, 41) {
		javas = time.Duration(b.number("permit.leaseTime", b.f("permit", id))) * time.Millisecond
	}
	if want == latchkey.NoExpiry {
		assert.Equal(b.t, want, got, "for Go")
		assert.Contains(b.t, []time.Duration{want, -time.Millisecond}, javas, "for Java")
		return
	}
	assert.InDelta(b.t, want, got, float64(5*time.Second), "for Go")
	assert.InDelta(b.t, want, javas, float64(5*time.Second), "for Java")
}

// The queries of both sides see every operation on permits by one side. Permits go from one side to
// the other by their IDs.
func TestPermitQueries(t *testing.T) {
	t.Parallel()
	eachCommonPermits(t, latchkey.Options{}, func(t *testing.T, b *commonPermits) {
		ctx := within(t, soon)
		assert.True(t, b.truth("permit.trySet", b.f("n", 4)))
		done, err := b.s.TrySetPermits(ctx, 9)
		require.NoError(t, err)
		assert.False(t, done, "Java has set it")
		b.counts(4, 0)

		ids := b.javaAcquire(2, 0)
		b.counts(2, 2)
		b.left(ids[0], latchkey.NoExpiry)
		permit := b.acquire()
		b.counts(1, 3)
		b.left(permit.ID(), defaultLease)

		states, err := b.s.Release(ctx, ids[0])
		require.NoError(t, err)
		assert.Equal(t, []latchkey.PermitState{latchkey.PermitReleased}, states)
		assert.False(t, b.truth("permit.tryRelease", b.f("permit", ids[0])), "Go has released it")
		b.counts(2, 2)
		assert.True(t, b.truth("permit.updateLease", b.f("permit", ids[1], "lease", 60_000)))
		b.left(ids[1], time.Minute)
		require.NoError(t, b.s.SetLease(ctx, ids[1], 2*time.Minute))
		b.left(ids[1], 2*time.Minute)
		require.NoError(t, b.s.SetLease(ctx, ids[1], latchkey.NoExpiry))
		b.left(ids[1], latchkey.NoExpiry)
		b.do("permit.release", b.f("permit", ids[1]))
		require.NoError(t, permit.Release(ctx))
		b.counts(4, 0)

		b.do("permit.set", b.f("n", 6))
		b.counts(6, 0)
		require.NoError(t, b.s.SetPermits(ctx, 3))
		b.counts(3, 0)
		b.do("permit.add", b.f("n", -1))
		b.counts(2, 0)
		require.NoError(t, b.s.AddPermits(ctx, 3))
		b.counts(5, 0)
		permit = b.acquire()
		b.do("permit.set", b.f("n", 0)) // fewer than are held
		b.counts(-1, 1)
		require.NoError(t, permit.Release(ctx))
		b.counts(0, 0)
	})
}

// Both sides can acquire several permits at once.
func TestPermitsAtOnce(t *testing.T) {
	t.Parallel()
	eachCommonPermits(t, latchkey.Options{}, func(t *testing.T, b *commonPermits) {
		ctx := within(t, soon)
		require.NoError(t, b.s.SetPermits(ctx, 5))
		ids := b.javaAcquire(3, time.Minute)
		states, err := b.s.Release(ctx, ids...)
		require.NoError(t, err)
		assert.Equal(t, []latchkey.PermitState{latchkey.PermitReleased, latchkey.PermitReleased, latchkey.PermitReleased}, states)
		b.counts(5, 0)

		permits, err := b.s.TryAcquireN(ctx, 3)
		require.NoError(t, err)
		b.counts(2, 3)
		assert.Empty(t, value[[]string](t, b.do("permit.try", b.f("n", 3))))
		all := []string{permits[0].ID(), permits[1].ID()}
		assert.EqualValues(t, 2, b.number("permit.tryReleaseAll", b.f("permits", all)))
		b.counts(4, 1)
		if before(t, b.jvm.version, 4, 0) {
			require.NoError(t, permits[2].Release(ctx))
		} else {
			assert.Zero(t, b.number("permit.tryReleaseAll", b.f("permits", []string{permits[2].ID(), all[0]})), "one is unknown")
			b.counts(4, 1)
			require.NoError(t, permits[2].Release(ctx))
		}
		b.counts(5, 0)
		assert.ErrorIs(t, permits[0].Release(ctx), latchkey.ErrNotHeld, "Java has released it")
	})
}

// A permit whose lease is over returns on both sides, whichever side held it. A holder on the other
// side learns of it.
func TestPermitsExpire(t *testing.T) {
	t.Parallel()
	eachCommonPermits(t, latchkey.Options{Lease: briefLease, Tuning: latchkey.Tuning{PollCeiling: time.Second}}, func(t *testing.T, b *commonPermits) {
		ctx := within(t, 2*soon)
		require.NoError(t, b.s.SetPermits(ctx, 1))
		id := b.javaAcquire(1, briefLease)[0]
		goWaiter := inBackground(func() (*latchkey.Permit, error) { return b.s.Acquire(ctx, latchkey.Lease(briefLease)) })
		permit := rig.Await(t, recovery, "the permit of Java is over", goWaiter)
		require.NoError(t, permit.err)
		a := b.try("permit.release", b.f("permit", id))
		assert.Contains(t, a.Message, "doesn't exist", "it was over")

		javaWaiter := b.on("waiter").start("permit.acquire", b.f("lease", 60_000))
		a = rig.Await(t, recovery, "the permit of Go is over", javaWaiter)
		id = value[[]string](t, a)[0]
		require.ErrorIs(t, permit.value.Err(), latchkey.ErrLost)
		b.counts(0, 1)
		b.do("permit.release", b.f("permit", id))

		renewed := b.acquire()
		b.do("permit.release", b.f("permit", renewed.ID())) // by force
		rig.Await(t, recovery, "the holder learns of it", renewed.Lost())
		b.counts(1, 0)
		assert.True(t, b.truth("permit.delete", b.f()))
		none, err := b.s.Inspect(ctx)
		require.NoError(t, err)
		assert.Equal(t, latchkey.KindNone, none.Kind)
	})
}

// Every operation of one side that makes permits available wakes a waiter of the other.
func TestPermitWakers(t *testing.T) {
	t.Parallel()
	eachCommonPermits(t, latchkey.Options{Tuning: latchkey.Tuning{PollCeiling: wakeCeiling}}, func(t *testing.T, b *commonPermits) {
		var held *latchkey.Permit
		waker := b.on("waker")
		must := func(op string, f fields) { waker.do(op, f) }
		for what, wake := range map[string]func() error{
			"Go release":      func() error { return held.Release(t.Context()) },
			"Go release ids":  func() error { _, err := b.s.Release(t.Context(), held.ID()); return err },
			"Go add":          func() error { return b.s.AddPermits(t.Context(), 1) },
			"Go set":          func() error { return b.s.SetPermits(t.Context(), 2) },
			"Java release":    func() error { must("permit.release", b.f("permit", held.ID())); return nil },
			"Java releaseAll": func() error { must("permit.releaseAll", b.f("permits", []string{held.ID()})); return nil },
			"Java add":        func() error { must("permit.add", b.f("n", 1)); return nil },
			"Java set":        func() error { must("permit.set", b.f("n", 2)); return nil },
		} {
			for _, waits := range []string{"Go", "Java"} {
				b.name = rig.Name(t)
				b.s = b.fresh(1)
				held = b.acquire()
				took := b.woken(waits, wake)
				assert.Less(t, took, wakeLimit, "%s wakes %s", what, waits)
			}
		}
	})
}

// fresh returns a semaphore of the current name with that many permits.
func (b *commonPermits) fresh(permits int) *latchkey.PermitSemaphore {
	b.t.Helper()
	s := b.client.NewPermitSemaphore(b.name)
	require.NoError(b.t, s.SetPermits(within(b.t, soon), permits))
	return s
}

// woken starts a waiter of one side, wakes it, and returns how long that took.
func (b *commonPermits) woken(side string, wake func() error) time.Duration {
	b.t.Helper()
	var goWaiter <-chan result[*latchkey.Permit]
	var javaWaiter <-chan answer
	if side == "Go" {
		goWaiter = inBackground(func() (*latchkey.Permit, error) { return b.s.Acquire(within(b.t, patience)) })
	} else {
		javaWaiter = b.on("waiter").start("permit.acquire", b.f("lease", 60_000))
	}
	subscribed(b.t, b.admin, "redisson_sc:{"+b.name+"}", 1)
	began := time.Now()
	require.NoError(b.t, wake())
	if side == "Go" {
		got := rig.Await(b.t, patience, "Go wakes", goWaiter)
		require.NoError(b.t, got.err)
		return got.at.Sub(began)
	}
	a := rig.Await(b.t, patience, "Java wakes", javaWaiter)
	require.NoError(b.t, a.err())
	return a.ended().Sub(began)
}

// A waiter of Redisson learns of a lease that this library shortens.
func TestShorterLeaseWakesJava(t *testing.T) {
	t.Parallel()
	eachCommonPermits(t, latchkey.Options{}, func(t *testing.T, b *commonPermits) {
		b.s = b.fresh(1)
		id := b.javaAcquire(1, time.Minute)[0]
		waiting := b.on("waiter").start("permit.acquire", b.f("lease", 60_000))
		subscribed(t, b.admin, "redisson_sc:{"+b.name+"}", 1)
		began := time.Now()
		require.NoError(t, b.s.SetLease(within(t, soon), id, 500*time.Millisecond))
		a := rig.Await(t, patience, "Java acquires", waiting)
		require.NoError(t, a.err())
		assert.Less(t, a.ended().Sub(began), 500*time.Millisecond+wakeLimit)
	})
}
