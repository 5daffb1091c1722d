package tests

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeyotel"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

var quick = latchkey.Options{Lease: 2 * time.Second, RetryBudget: time.Second}

// contains asserts that all has the values in want.
func contains(t *testing.T, all, want map[string]int64) {
	t.Helper()
	for name, value := range want {
		got, found := all[name]
		if assert.True(t, found, "there is no %s in %v", name, all) {
			assert.Equal(t, value, got, name)
		}
	}
}

// A lock that is acquired, re-entered and released.
func TestMetricsOfALock(t *testing.T) {
	b := newBench(t)
	client := b.client(latchkeytest.NewServer(t), latchkey.Options{})
	lock := client.NewLock("orders:42")
	hold, err := lock.Lock(t.Context())
	require.NoError(t, err)
	again, err := lock.Lock(hold.Context(t.Context()))
	require.NoError(t, err)
	b.await(t, latchkey.EventAcquired)
	b.await(t, latchkey.EventAcquired)
	assert.Equal(t, map[string]int64{
		"latchkey.attempts{lock,acquired}":      1,
		"latchkey.wait.duration{lock,acquired}": 2,
		"latchkey.holds{lock}":                  1,
		"latchkey.losses{lock,lost}":            0,
		"latchkey.losses{lock,max_hold}":        0,
	}, b.values(t), "one hold, that was entered again")

	require.NoError(t, again.Unlock(t.Context()))
	require.NoError(t, hold.Unlock(t.Context()))
	b.await(t, latchkey.EventReleased)
	contains(t, b.values(t), map[string]int64{
		"latchkey.holds{lock}":                  0,
		"latchkey.hold.duration{lock,released}": 1,
		"latchkey.losses{lock,lost}":            0,
	})
}

// Why calls gave up.
func TestMetricsOfThoseThatGaveUp(t *testing.T) {
	b, server := newBench(t), latchkeytest.NewServer(t)
	client := b.client(server, quick)
	_, err := server.Client().NewLock("busy").Lock(t.Context())
	require.NoError(t, err)
	_, err = client.NewLock("busy").TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = client.NewLock("busy").Lock(ended)
	require.ErrorIs(t, err, context.Canceled)
	_, err = client.NewMutex("busy").TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrWrongKind)
	err = client.NewSemaphore("none").Acquire(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotSet)
	server.Stop()
	_, err = client.NewLock("busy").TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
	for range 5 {
		b.await(t, latchkey.EventGaveUp)
	}
	contains(t, b.values(t), map[string]int64{
		"latchkey.wait.duration{lock,not_acquired}": 1,
		"latchkey.wait.duration{lock,canceled}":     1,
		"latchkey.wait.duration{mutex,wrong_kind}":  1,
		"latchkey.wait.duration{semaphore,not_set}": 1,
		"latchkey.wait.duration{lock,unavailable}":  1,
		"latchkey.attempts{lock,not_acquired}":      1,
		"latchkey.attempts{lock,unavailable}":       1,
	})
}

// Renewals that succeed, renewals that fail, and a loss.
func TestMetricsOfRenewalsAndLosses(t *testing.T) {
	b, server := newBench(t), latchkeytest.NewServer(t)
	hold, err := b.client(server, quick).NewLock("job").Lock(t.Context())
	require.NoError(t, err)
	b.await(t, latchkey.EventRenewed)
	server.Refuse("LOADING Redis is loading the dataset in memory")
	b.await(t, latchkey.EventRenewalFailed)
	<-hold.Lost()
	b.await(t, latchkey.EventLost)
	values := b.values(t)
	assert.Positive(t, values["latchkey.renewals{lock,renewed}"])
	assert.Positive(t, values["latchkey.renewals{lock,unavailable}"])
	contains(t, values, map[string]int64{
		"latchkey.losses{lock,lost}":        1,
		"latchkey.hold.duration{lock,lost}": 1,
		"latchkey.holds{lock}":              0,
	})
	server.Refuse("")
	_, err = b.client(server, quick).NewLock("short").Lock(t.Context(), latchkey.MaxHold(time.Second))
	require.NoError(t, err)
	b.await(t, latchkey.EventLost)
	contains(t, b.values(t), map[string]int64{"latchkey.losses{lock,max_hold}": 1, "latchkey.hold.duration{lock,max_hold}": 1})
}

// Every hold is subtracted again: a hold whose release fails, one that is passed on, shared reads,
// a downgraded hold, permits, and holds that Close releases.
func TestMetricsOfHoldsComeBackToZero(t *testing.T) {
	b, server := newBench(t), latchkeytest.NewServer(t)
	client := b.client(server, latchkey.Options{Tuning: latchkey.Tuning{Turn: time.Second}})
	all := goroutines(t)
	for range 8 {
		for _, lock := range []latchkey.Locker{client.NewLock("a"), client.NewFairLock("b"), client.NewRWLock("c").Reader(), client.NewRWLock("c").Writer(), client.NewMutex("d")} {
			all.Go(func() { assert.NoError(t, lock.Do(t.Context(), func(context.Context) error { return nil })) })
		}
	}
	all.Wait()
	writer, err := client.NewRWLock("e").Writer().Lock(t.Context())
	require.NoError(t, err)
	reader, err := writer.Downgrade(t.Context())
	require.NoError(t, err)
	require.NoError(t, reader.Unlock(t.Context()))
	permits := client.NewPermitSemaphore("f")
	_, err = permits.TrySetPermits(t.Context(), 3)
	require.NoError(t, err)
	permit, err := permits.Acquire(t.Context())
	require.NoError(t, err)
	require.NoError(t, permit.Release(t.Context()))
	failing, err := b.client(server, quick).NewLock("g").Lock(t.Context())
	require.NoError(t, err)
	server.Stop()
	require.Error(t, failing.Unlock(t.Context()))
	time.AfterFunc(2*quick.Lease, server.Restart)
	held := func() (n int64) {
		for name, value := range b.values(t) {
			if strings.HasPrefix(name, "latchkey.holds{") {
				n += max(value, -value)
			}
		}
		return n
	}
	if !assert.Eventually(t, func() bool { return held() == 0 }, soon, 10*time.Millisecond) {
		require.Fail(t, "something is held", b.values(t))
	}
	_, err = client.NewLock("h").Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, client.Close(t.Context()))
	assert.Zero(t, held(), b.values(t))
}

// Permits without ids, latches, and undone acquisitions.
func TestMetricsOfOtherObjects(t *testing.T) {
	b := newBench(t)
	client := b.client(latchkeytest.NewServer(t), latchkey.Options{})
	pool, gate := client.NewSemaphore("pool"), client.NewCountDownLatch("gate")
	_, err := pool.TrySetPermits(t.Context(), 3)
	require.NoError(t, err)
	require.NoError(t, pool.AcquireN(t.Context(), 2))
	require.NoError(t, pool.Release(t.Context()))
	_, err = gate.TrySetCount(t.Context(), 1)
	require.NoError(t, err)
	_, err = gate.CountDown(t.Context())
	require.NoError(t, err)
	require.NoError(t, gate.Await(t.Context()))
	b.await(t, latchkey.EventOpened)
	b.observer.Observe(latchkey.Event{Type: latchkey.EventUndone, Kind: latchkey.KindLock, Context: context.Background(), Time: time.Now()})
	assert.Equal(t, map[string]int64{
		"latchkey.attempts{semaphore,acquired}":      1,
		"latchkey.wait.duration{semaphore,acquired}": 1,
		"latchkey.permits.acquired{semaphore}":       2,
		"latchkey.permits.released{semaphore}":       1,
		"latchkey.latch.countdowns{latch}":           1,
		"latchkey.wait.duration{latch,opened}":       1,
		"latchkey.undone{lock}":                      1,
	}, b.values(t))
}

// Names are attributes of metrics only with WithNames.
func TestMetricsHaveNamesByChoice(t *testing.T) {
	for _, names := range []bool{false, true} {
		var options []latchkeyotel.Option
		if names {
			options = append(options, latchkeyotel.WithNames())
		}
		b := newBench(t, options...)
		hold, err := b.client(latchkeytest.NewServer(t), latchkey.Options{}).NewLock("orders:42").Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, hold.Unlock(t.Context()))
		b.await(t, latchkey.EventReleased)
		for name := range b.values(t) {
			assert.Equal(t, names, strings.Contains(name, "orders:42"), name)
		}
	}
}

// Each collection queries the watched objects, and reports them by name.
func TestWatchedObjects(t *testing.T) {
	b, server := newBench(t), latchkeytest.NewServer(t)
	client := server.Client()
	fair, pool, leased, gate := client.NewFairLock("fair"), client.NewSemaphore("pool"), client.NewPermitSemaphore("leased"), client.NewCountDownLatch("gate")
	slots := client.NewFairSemaphore("slots")
	watch, err := b.observer.Watch(fair, pool, leased, slots, gate)
	require.NoError(t, err)
	assert.Equal(t, map[string]int64{
		"latchkey.waiters{fair,fair}": 0, "latchkey.waiters{permit,leased}": 0, "latchkey.waiters{fairpermit,slots}": 0,
	}, b.values(t), "the others are not set")

	hold, err := fair.Lock(t.Context())
	require.NoError(t, err)
	all, next := goroutines(t), server.Client().NewFairLock("fair")
	all.Go(func() {
		hold, err := next.Lock(t.Context())
		if assert.NoError(t, err) {
			assert.NoError(t, hold.Unlock(t.Context()))
		}
	})
	_, err = pool.TrySetPermits(t.Context(), 3)
	require.NoError(t, err)
	require.NoError(t, pool.Acquire(t.Context()))
	_, err = leased.TrySetPermits(t.Context(), 5)
	require.NoError(t, err)
	_, err = slots.TrySetPermits(t.Context(), 4)
	require.NoError(t, err)
	_, err = slots.Acquire(t.Context())
	require.NoError(t, err)
	_, err = gate.TrySetCount(t.Context(), 7)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return b.values(t)["latchkey.waiters{fair,fair}"] == 1 }, soon, 10*time.Millisecond)
	assert.Equal(t, map[string]int64{
		"latchkey.waiters{fair,fair}":                  1,
		"latchkey.permits.available{semaphore,pool}":   2,
		"latchkey.permits.limit{semaphore,pool}":       3,
		"latchkey.permits.available{permit,leased}":    5,
		"latchkey.permits.limit{permit,leased}":        5,
		"latchkey.waiters{permit,leased}":              0,
		"latchkey.waiters{fairpermit,slots}":           0,
		"latchkey.permits.available{fairpermit,slots}": 3,
		"latchkey.permits.limit{fairpermit,slots}":     4,
		"latchkey.latch.count{latch,gate}":             7,
	}, b.values(t))
	require.NoError(t, hold.Unlock(t.Context()))
	all.Wait()
	require.NoError(t, watch.Unregister())
	assert.Empty(t, b.values(t))
	_, err = b.observer.Watch(latchkey.NewMultiLock(fair))
	require.ErrorContains(t, err, "*latchkey.MultiLock cannot be watched")
	_, err = b.observer.Watch(client.NewRWLock("readers").Reader())
	assert.ErrorContains(t, err, "it has no queue on the server")
}

// Each kind of object with a queue on the server reports the waiters of another client.
func TestWatchedQueues(t *testing.T) {
	b, server := newBench(t), latchkeytest.NewServer(t)
	client, other := server.Client(), server.Client()
	locks := func(c *latchkey.Client) []latchkey.Locker {
		return []latchkey.Locker{c.NewMutex("mutex"), c.NewLock("lock"), c.NewFencedLock("fenced"), c.NewFairLock("fair"), c.NewRWLock("rwlock").Writer()}
	}
	watch, err := b.observer.Watch(client.NewMutex("mutex"), client.NewLock("lock"), client.NewFencedLock("fenced"), client.NewFairLock("fair"),
		client.NewRWLock("rwlock"), client.NewElection("election"), client.NewBarrier("barrier", 3), client.NewFairSemaphore("fairpermit"))
	require.NoError(t, err)
	none := map[string]int64{}
	for _, name := range []string{"mutex", "lock", "fenced", "fair", "rwlock", "election", "barrier", "fairpermit"} {
		none["latchkey.waiters{"+name+","+name+"}"] = 0
	}
	assert.Equal(t, none, b.values(t))

	for _, lock := range locks(client) {
		_, err := lock.Lock(t.Context())
		require.NoError(t, err)
	}
	_, err = client.NewElection("election").Campaign(t.Context(), "first")
	require.NoError(t, err)
	slots := client.NewFairSemaphore("fairpermit")
	_, err = slots.TrySetPermits(t.Context(), 1)
	require.NoError(t, err)
	_, err = slots.Acquire(t.Context())
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	all := goroutines(t)
	wait := func(call func(context.Context) error) {
		all.Go(func() { assert.ErrorIs(t, call(ctx), context.Canceled) })
	}
	for _, lock := range locks(other) {
		wait(func(ctx context.Context) error { _, err := lock.Lock(ctx); return err })
	}
	wait(func(ctx context.Context) error {
		_, err := other.NewElection("election").Campaign(ctx, "second")
		return err
	})
	wait(func(ctx context.Context) error { _, err := other.NewBarrier("barrier", 3).Await(ctx); return err })
	wait(func(ctx context.Context) error {
		_, err := other.NewFairSemaphore("fairpermit").Acquire(ctx)
		return err
	})
	waits := func(n int64) func() bool {
		return func() bool {
			values := b.values(t)
			for name := range none {
				if values[name] != n {
					return false
				}
			}
			return true
		}
	}
	require.Eventually(t, waits(1), soon, 10*time.Millisecond, b.values(t))
	cancel()
	all.Wait()
	require.Eventually(t, waits(0), soon, 10*time.Millisecond, b.values(t))
	require.NoError(t, watch.Unregister())
	assert.Empty(t, b.values(t))
}

// The waiting calls of all watched clients are added up, by kind, also with names.
func TestWaitingCalls(t *testing.T) {
	b, server := newBench(t, latchkeyotel.WithNames()), latchkeytest.NewServer(t)
	first, second := server.Client(), server.Client()
	assert.Empty(t, b.values(t), "no client is watched")
	stopFirst, stopSecond := b.observer.WatchClient(first), b.observer.WatchClient(second)
	assert.Empty(t, b.values(t), "no call has waited")
	held, err := first.NewLock("job").Lock(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	all := goroutines(t)
	for _, client := range []*latchkey.Client{first, first, second} {
		all.Go(func() {
			_, err := client.NewLock("job").Lock(ctx)
			assert.ErrorIs(t, err, context.Canceled)
		})
	}
	require.Eventually(t, func() bool { return b.values(t)["latchkey.calls.waiting{lock}"] == 3 }, soon, time.Millisecond)
	stopSecond()
	assert.Equal(t, map[string]int64{"latchkey.calls.waiting{lock}": 2}, b.values(t))
	cancel()
	all.Wait()
	assert.Equal(t, map[string]int64{"latchkey.calls.waiting{lock}": 0}, b.values(t), "the series continues")
	require.NoError(t, held.Unlock(t.Context()))
	stopFirst()
	assert.Empty(t, b.values(t))
}

// One observer serves several clients at once, while its metrics are collected.
func TestOneObserverOfManyClients(t *testing.T) {
	b, server := newBench(t, latchkeyotel.WithNames()), latchkeytest.NewServer(t)
	all := goroutines(t)
	const clients, calls = 4, 25
	for range clients {
		client := b.client(server, latchkey.Options{})
		all.Go(func() {
			for range calls {
				assert.NoError(t, client.NewLock("shared").Do(t.Context(), func(context.Context) error { return nil }))
				_ = b.values(t)
			}
			assert.NoError(t, client.Close(t.Context()))
		})
	}
	all.Wait()
	contains(t, b.values(t), map[string]int64{
		"latchkey.wait.duration{lock,shared,acquired}": clients * calls,
		"latchkey.hold.duration{lock,shared,released}": clients * calls,
		"latchkey.holds{lock,shared}":                  0,
	})
}

// Nil is refused or does nothing, and nothing panics.
func TestNil(t *testing.T) {
	_, err := latchkeyotel.New(nil)
	require.NoError(t, err)
	b := newBench(t)
	for _, object := range []latchkeyotel.Object{nil, (*latchkey.Lock)(nil), (*latchkey.Semaphore)(nil)} {
		_, err := b.observer.Watch(object)
		require.ErrorContains(t, err, "nil")
	}
	_, err = b.observer.Watch(nil)
	require.ErrorContains(t, err, "nil")
	stop := b.observer.WatchClient(nil)
	assert.Empty(t, b.values(t))
	stop()
}

func TestProviderIsNil(t *testing.T) {
	_, err := latchkeyotel.New(latchkeyotel.WithMeterProvider(nil))
	require.Error(t, err)
	_, err = latchkeyotel.New(latchkeyotel.WithTracerProvider(nil))
	require.Error(t, err)
}
