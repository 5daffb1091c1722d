package latchkeytest_test

import (
	"bytes"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/latchkeytest"
)

func TestLeaseRunsOutByItself(t *testing.T) {
	const lease = time.Second
	server := latchkeytest.NewServer(t)
	dead, heir := server.Client().NewLock("orders"), server.Client().NewLock("orders")

	began := time.Now()
	_, err := dead.TryLock(t.Context(), latchkey.Lease(lease))
	require.NoError(t, err)
	_, err = heir.Lock(t.Context(), latchkey.Wait(time.Minute))
	require.NoError(t, err)
	assert.GreaterOrEqual(t, time.Since(began), lease-time.Millisecond)
}

func TestManualTimeMovesLeases(t *testing.T) {
	server := latchkeytest.NewServer(t, latchkeytest.ManualTime())
	dead, heir := server.Client().NewLock("orders"), server.Client().NewLock("orders")
	_, err := dead.TryLock(t.Context(), latchkey.Lease(time.Hour))
	require.NoError(t, err)

	server.Advance(time.Hour - time.Millisecond)
	seen, err := heir.Inspect(t.Context())
	require.NoError(t, err)
	assert.Equal(t, time.Millisecond, seen.TTL)
	_, err = heir.TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)

	server.Advance(time.Millisecond)
	_, err = heir.TryLock(t.Context())
	require.NoError(t, err)
}

func TestManualTimeStandsStill(t *testing.T) {
	server := latchkeytest.NewServer(t, latchkeytest.ManualTime())
	orders := server.Client().NewLock("orders")
	_, err := orders.TryLock(t.Context(), latchkey.Lease(time.Minute))
	require.NoError(t, err)

	// Real time must have no effect, so some of it has to pass.
	time.Sleep(10 * time.Millisecond)
	seen, err := orders.Inspect(t.Context())
	require.NoError(t, err)
	assert.Equal(t, time.Minute, seen.TTL)
}

func TestManualTimeMovesTheServersClock(t *testing.T) {
	server := latchkeytest.NewServer(t, latchkeytest.ManualTime())
	client := raw(t, server)

	before := client.serverTime(t)
	server.Advance(90 * time.Minute)
	assert.Equal(t, before.Add(90*time.Minute), client.serverTime(t))

	leapDay := time.Date(2028, time.February, 29, 12, 0, 0, 0, time.UTC)
	server.SetTime(leapDay)
	assert.True(t, leapDay.Equal(client.serverTime(t)))
}

func TestSetTimeBackBringsNothingBack(t *testing.T) {
	server := latchkeytest.NewServer(t, latchkeytest.ManualTime())
	client := raw(t, server)
	start := client.serverTime(t)
	orders := server.Client().NewLock("orders")
	_, err := orders.TryLock(t.Context(), latchkey.Lease(time.Minute))
	require.NoError(t, err)

	server.SetTime(start.Add(time.Hour))
	server.SetTime(start)
	seen, err := orders.Inspect(t.Context())
	require.NoError(t, err)
	assert.False(t, seen.Locked())
}

func TestClockIsMovedByHandOnlyIfAskedFor(t *testing.T) {
	running, err := latchkeytest.Start()
	require.NoError(t, err)
	defer running.Close()
	assert.Panics(t, func() { running.Advance(time.Second) })
	assert.Panics(t, func() { running.SetTime(time.Now()) })

	manual, err := latchkeytest.Start(latchkeytest.ManualTime())
	require.NoError(t, err)
	defer manual.Close()
	assert.Panics(t, func() { manual.Advance(-time.Second) })
}

// This is also the leak test of this package: a bubble fails if a goroutine of
// the server or of a client is left in it.
func TestAnHourPassesInABubble(t *testing.T) {
	defer limitRealTime()()
	synctest.Test(t, func(t *testing.T) {
		server := latchkeytest.NewServer(t)
		doomed := server.Client()
		began := time.Now()
		hold, err := doomed.NewLock("orders").TryLock(t.Context(), latchkey.Lease(time.Hour))
		require.NoError(t, err)

		server.Crash(doomed)
		inherited, err := server.Client().NewLock("orders").Lock(t.Context())
		require.NoError(t, err)
		assert.InDelta(t, time.Hour, time.Since(began), float64(10*time.Millisecond))
		require.ErrorIs(t, hold.Err(), latchkey.ErrLost)
		require.NoError(t, inherited.Unlock(t.Context()))
	})
}

func TestARenewedHoldOutlivesItsLeaseInABubble(t *testing.T) {
	defer limitRealTime()()
	synctest.Test(t, func(t *testing.T) {
		server := latchkeytest.NewServer(t)
		held, other := server.Client().NewLock("orders"), server.Client().NewLock("orders")
		hold, err := held.Lock(t.Context())
		require.NoError(t, err)

		time.Sleep(time.Hour) // many leases; in a bubble it takes no time
		require.NoError(t, hold.Err())
		_, err = other.TryLock(t.Context())
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		require.NoError(t, hold.Unlock(t.Context()))
	})
}

// The observer and the logger run in the bubble too, and have finished when it is idle.
func TestEventsAndTheLogInABubble(t *testing.T) {
	defer limitRealTime()()
	synctest.Test(t, func(t *testing.T) {
		server := latchkeytest.NewServer(t)
		var events []latchkey.EventType
		var log bytes.Buffer
		client := server.Client(latchkey.Options{
			Logger:   slog.New(slog.NewTextHandler(&log, nil)),
			Observer: func(e latchkey.Event) { events = append(events, e.Type) },
		})
		_, err := client.NewLock("orders").Lock(t.Context(), latchkey.Lease(time.Hour))
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, []latchkey.EventType{latchkey.EventAttempt, latchkey.EventAcquired}, events)
		assert.Empty(t, log.String())

		time.Sleep(time.Hour) // the whole lease; in a bubble it takes no time
		synctest.Wait()
		assert.Equal(t, latchkey.EventLost, events[len(events)-1])
		assert.Contains(t, log.String(), "hold lost")
	})
}

// limitRealTime ends a test whose bubble is never idle, so that its time does not
// pass. Call it outside the bubble. It returns a function that lifts the limit.
func limitRealTime() func() bool {
	limit := time.AfterFunc(2*time.Minute, func() { panic("a busy loop keeps the bubble's time from passing") })
	return limit.Stop
}

// A label lasts for as long as its client holds something. After a crash it lasts as long as the
// leases.
func TestLabelsInABubble(t *testing.T) {
	defer limitRealTime()()
	synctest.Test(t, func(t *testing.T) {
		server := latchkeytest.NewServer(t)
		doomed, client, other := server.Client(latchkey.Options{Label: "doomed"}), server.Client(latchkey.Options{Label: "alive"}), server.Client()
		_, err := doomed.NewLock("fixed").TryLock(t.Context(), latchkey.Lease(2*time.Hour))
		require.NoError(t, err)
		_, err = client.NewLock("renewed").TryLock(t.Context(), latchkey.Note("order 42"))
		require.NoError(t, err)
		synctest.Wait()
		server.Crash(doomed)
		time.Sleep(119 * time.Minute)
		for name, want := range map[string][2]string{"fixed": {"doomed", ""}, "renewed": {"alive", "order 42"}} {
			found, err := other.Inspect(t.Context(), name)
			require.NoError(t, err)
			require.Len(t, found.Holders, 1)
			assert.Equal(t, want, [2]string{found.Holders[0].Label, found.Holders[0].Note})
		}
	})
}

// In a bubble, a rate limiter lets requests through by the clock of the bubble.
func TestRateLimiterInABubble(t *testing.T) {
	defer limitRealTime()()
	synctest.Test(t, func(t *testing.T) {
		budget := latchkeytest.NewServer(t).Client().NewRateLimiter("api", latchkey.Rate{N: 1, Per: time.Hour})
		began := time.Now()
		for range 4 {
			require.NoError(t, budget.Wait(t.Context()))
		}
		require.InDelta(t, 3*time.Hour, time.Since(began), float64(time.Second))
	})
}
