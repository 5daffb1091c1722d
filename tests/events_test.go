package tests

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// callKey is the context key for the name of a call.
type callKey struct{}

// inCall returns a context with the name of a call, which the events of the call show.
func inCall(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, callKey{}, name)
}

// observedClient returns a client and a function that waits for its next event of the given types.
func observedClient(t *testing.T, addr string, o latchkey.Options) (client *latchkey.Client, next func(...latchkey.EventType) latchkey.Event) {
	t.Helper()
	events := make(chan latchkey.Event, 10_000)
	o.Observer = func(e latchkey.Event) { events <- e }
	return connectVia(t, rig.Shared(), addr, o), func(types ...latchkey.EventType) latchkey.Event {
		t.Helper()
		for {
			e := rig.Await(t, soon, "an event", events)
			require.NotNil(t, e.Context)
			require.Nil(t, e.Context.Done())
			if slices.Contains(types, e.Type) {
				return e
			}
		}
	}
}

func callOf(e latchkey.Event) any { return e.Context.Value(callKey{}) }

// A call that fails reports that it gave up, after what time, and why.
func TestEventsTellWhoGaveUp(t *testing.T) {
	t.Parallel()
	server := rig.Shared()
	other := connect(t, server)
	eachKind(t, func(t *testing.T, k kind) {
		t.Parallel()
		name := rig.Name(t)
		client, next := observedClient(t, server.Addr(), latchkey.Options{})
		holder := mustLock(t, k.open(other, name))
		lock := k.open(client, name)

		_, err := lock.TryLock(inCall(t.Context(), "try"))
		require.ErrorIs(t, err, latchkey.ErrNotAcquired)
		e := next(latchkey.EventGaveUp)
		assert.Equal(t, err, e.Err)
		assert.Equal(t, "try", callOf(e))
		assert.Equal(t, name, e.Name)

		_, err = lock.Lock(inCall(t.Context(), "wait"), latchkey.Wait(300*time.Millisecond))
		require.Error(t, err)
		e = next(latchkey.EventGaveUp)
		assert.Equal(t, err, e.Err)
		assert.Equal(t, "wait", callOf(e))
		assert.GreaterOrEqual(t, e.Wait, 300*time.Millisecond)

		ended, cancel := context.WithCancel(inCall(t.Context(), "ended"))
		cancel()
		_, err = lock.Lock(ended)
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, "ended", callOf(next(latchkey.EventGaveUp)))
		mustUnlock(t, holder)
	})
}

// A MultiLock reports that it gave up as a whole, in addition to its members.
func TestEventsTellThatTheWholeGaveUp(t *testing.T) {
	t.Parallel()
	server, name := rig.Shared(), rig.Name(t)
	client, next := observedClient(t, server.Addr(), latchkey.Options{})
	defer mustUnlock(t, mustLock(t, connect(t, server).NewLock(name+"2")))
	_, err := latchkey.NewMultiLock(client.NewLock(name+"1"), client.NewLock(name+"2")).TryLock(inCall(t.Context(), "both"))
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	e := next(latchkey.EventGaveUp)
	for e.Kind != latchkey.KindMulti {
		e = next(latchkey.EventGaveUp)
	}
	assert.Equal(t, err, e.Err)
	assert.Equal(t, "both", callOf(e))
}

// Each event of a hold has the context of the call that acquired it, even if the hold was passed on
// in memory.
func TestEventsHaveTheContextOfTheirCall(t *testing.T) {
	t.Parallel()
	for what, open := range map[string]func(c *latchkey.Client, name string) latchkey.Locker{
		"lock":  func(c *latchkey.Client, name string) latchkey.Locker { return c.NewLock(name) },
		"multi": func(c *latchkey.Client, name string) latchkey.Locker { return latchkey.NewMultiLock(c.NewLock(name)) },
	} {
		t.Run(what, func(t *testing.T) {
			client, next := observedClient(t, rig.Shared().Addr(), latchkey.Options{Tuning: latchkey.Tuning{Turn: longestTurn}})
			lock := open(client, rig.Name(t))
			const calls = 20
			held := make(chan *latchkey.Hold, calls)
			waiters := rig.Goroutines(t)
			for i := range calls {
				waiters.Go(func() {
					hold, err := lock.Lock(inCall(t.Context(), strconv.Itoa(i)))
					if assert.NoError(t, err) {
						held <- hold
					}
				})
			}
			for range calls {
				mustUnlock(t, rig.Await(t, soon, "a hold", held))
			}
			seen := map[any][]latchkey.EventType{}
			for range 2 * calls {
				e := next(latchkey.EventAcquired, latchkey.EventReleased)
				seen[callOf(e)] = append(seen[callOf(e)], e.Type)
			}
			for i := range calls {
				assert.ElementsMatch(t, []latchkey.EventType{latchkey.EventAcquired, latchkey.EventReleased}, seen[strconv.Itoa(i)], i)
			}
		})
	}
}

// A renewal that is not confirmed is reported with its reason, before the loss that may follow.
func TestEventsTellThatARenewalFailed(t *testing.T) {
	t.Parallel()
	link := rig.NewLink(t, rig.Shared())
	client, next := observedClient(t, link.Addr(), latchkey.Options{Lease: 3 * time.Second, RetryBudget: 500 * time.Millisecond})
	var hold *latchkey.Hold
	rig.Eventually(t, soon, "the lock", func() (err error) {
		hold, err = client.NewLock(rig.Name(t)).Lock(inCall(t.Context(), "held"))
		return err
	})
	link.Cut()
	e := next(latchkey.EventRenewalFailed, latchkey.EventLost)
	assert.Equal(t, latchkey.EventRenewalFailed, e.Type)
	require.ErrorIs(t, e.Err, latchkey.ErrUnavailable)
	assert.Equal(t, "held", callOf(e))
	e = next(latchkey.EventLost)
	assert.ErrorIs(t, e.Err, latchkey.ErrLost)
	assert.Equal(t, "held", callOf(e))
	<-hold.Lost()
}

// A failed attempt reports the same error as the call.
func TestEventsTellWhyAnAttemptFailed(t *testing.T) {
	t.Parallel()
	link := rig.NewLink(t, rig.Shared())
	client, next := observedClient(t, link.Addr(), latchkey.Options{RetryBudget: 100 * time.Millisecond})
	link.Cut()
	_, err := client.NewLock(rig.Name(t)).TryLock(t.Context())
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
	assert.ErrorIs(t, next(latchkey.EventAttempt).Err, latchkey.ErrUnavailable)
	_, err = client.NewLock(rig.Name(t)).Lock(t.Context(), latchkey.Wait(300*time.Millisecond))
	require.ErrorIs(t, err, latchkey.ErrUnavailable)
	for e := next(latchkey.EventAttempt, latchkey.EventGaveUp); e.Type == latchkey.EventAttempt; e = next(latchkey.EventAttempt, latchkey.EventGaveUp) {
		assert.ErrorIs(t, e.Err, latchkey.ErrUnavailable)
	}
	require.ErrorIs(t, client.NewSemaphore(rig.Name(t)).TryAcquire(t.Context()), latchkey.ErrUnavailable)
	assert.ErrorIs(t, next(latchkey.EventAttempt).Err, latchkey.ErrUnavailable)
}

// Acquisitions that are not re-entries, less releases and losses, are the holds.
func TestEventsTellReentriesFromHolds(t *testing.T) {
	t.Parallel()
	before := time.Now()
	client, next := observedClient(t, rig.Shared().Addr(), latchkey.Options{})
	lock := client.NewLock(rig.Name(t))
	hold := mustLock(t, lock)
	again, err := lock.Lock(hold.Context(t.Context()))
	require.NoError(t, err)
	mustUnlock(t, again)
	mustUnlock(t, hold)
	for _, want := range []struct {
		is      latchkey.EventType
		reentry bool
	}{{latchkey.EventAcquired, false}, {latchkey.EventAcquired, true}, {latchkey.EventReleased, false}} {
		e := next(latchkey.EventAcquired, latchkey.EventReleased)
		assert.Equal(t, want.is, e.Type)
		assert.Equal(t, want.reentry, e.Reentry)
		assert.False(t, e.Time.Before(before), "an event tells when it happened")
		before = e.Time
	}
}

// A downgrade reports the release of the write hold, and the acquisition of a read hold in the
// context of the call.
func TestEventsOfADowngrade(t *testing.T) {
	t.Parallel()
	client, next := observedClient(t, rig.Shared().Addr(), latchkey.Options{})
	writer := mustLock(t, client.NewRWLock(rig.Name(t)).Writer())
	reader, err := writer.Downgrade(inCall(t.Context(), "downgrade"))
	require.NoError(t, err)
	mustUnlock(t, reader)
	for _, want := range []struct {
		is   latchkey.EventType
		kind latchkey.Kind
		call any
	}{
		{latchkey.EventAcquired, latchkey.KindWrite, nil}, {latchkey.EventReleased, latchkey.KindWrite, nil},
		{latchkey.EventAcquired, latchkey.KindRead, "downgrade"}, {latchkey.EventReleased, latchkey.KindRead, "downgrade"},
	} {
		e := next(latchkey.EventAcquired, latchkey.EventReleased)
		assert.Equal(t, want.is, e.Type)
		assert.Equal(t, want.kind, e.Kind)
		assert.Equal(t, want.call, callOf(e))
		assert.False(t, e.Reentry)
	}
}

// Permits of a semaphore have events with their number.
func TestEventsOfASemaphore(t *testing.T) {
	t.Parallel()
	client, next := observedClient(t, rig.Shared().Addr(), latchkey.Options{})
	s := newSemaphore(t, client, 3)
	require.NoError(t, s.AcquireN(inCall(t.Context(), "acquire"), 2))
	for _, want := range []latchkey.EventType{latchkey.EventAttempt, latchkey.EventAcquired} {
		e := next(latchkey.EventAttempt, latchkey.EventAcquired, latchkey.EventReleased, latchkey.EventGaveUp)
		assert.Equal(t, want, e.Type)
		assert.Equal(t, latchkey.KindSemaphore, e.Kind)
		assert.Equal(t, s.Name(), e.Name)
		assert.Equal(t, 2, e.Count)
		assert.Equal(t, "acquire", callOf(e))
		assert.NoError(t, e.Err)
	}
	err := s.TryAcquireN(inCall(t.Context(), "too many"), 2)
	require.ErrorIs(t, err, latchkey.ErrNotAcquired)
	assert.ErrorIs(t, next(latchkey.EventAttempt).Err, latchkey.ErrNotAcquired)
	e := next(latchkey.EventGaveUp)
	assert.Equal(t, err, e.Err)
	assert.Equal(t, "too many", callOf(e))

	require.NoError(t, s.ReleaseN(inCall(t.Context(), "release"), 2))
	e = next(latchkey.EventReleased)
	assert.Equal(t, 2, e.Count)
	assert.Equal(t, "release", callOf(e))
	released, err := client.NewSemaphore(s.Name()+"none").ReleaseIfExists(t.Context(), 1)
	require.NoError(t, err)
	require.False(t, released)
	released, err = s.ReleaseIfExists(inCall(t.Context(), "if exists"), 1)
	require.NoError(t, err)
	require.True(t, released)
	assert.Equal(t, "if exists", callOf(next(latchkey.EventReleased)), "what was not there was not released")
}

// A latch reports counts, callers that passed it, and callers that did not.
func TestEventsOfALatch(t *testing.T) {
	t.Parallel()
	client, next := observedClient(t, rig.Shared().Addr(), latchkey.Options{})
	latch := newLatch(t, client, 2)
	err := latch.Await(inCall(t.Context(), "early"), latchkey.Wait(300*time.Millisecond))
	require.Error(t, err)
	e := next(latchkey.EventGaveUp)
	assert.Equal(t, latchkey.KindLatch, e.Kind)
	assert.Equal(t, err, e.Err)
	assert.Equal(t, "early", callOf(e))
	assert.GreaterOrEqual(t, e.Wait, 300*time.Millisecond)
	for left := 1; left >= 0; left-- {
		_, err := latch.CountDown(inCall(t.Context(), "count"))
		require.NoError(t, err)
		e := next(latchkey.EventCountedDown)
		assert.Equal(t, left, e.Count)
		assert.Equal(t, "count", callOf(e))
	}
	require.NoError(t, latch.Await(inCall(t.Context(), "late")))
	e = next(latchkey.EventOpened)
	assert.Equal(t, "late", callOf(e))
	assert.Equal(t, latch.Name(), e.Name)
	assert.NotContains(t, e.LogValue().String(), "owner", "a latch has none")
}

// A barrier reports parties that passed it, and parties that did not.
func TestEventsOfABarrier(t *testing.T) {
	t.Parallel()
	client, next := observedClient(t, rig.Shared().Addr(), latchkey.Options{})
	_, err := client.NewBarrier(rig.Name(t), 2).Await(inCall(t.Context(), "alone"), latchkey.Wait(300*time.Millisecond))
	require.Error(t, err)
	e := next(latchkey.EventGaveUp)
	assert.Equal(t, latchkey.KindBarrier, e.Kind)
	assert.Equal(t, err, e.Err)
	assert.Equal(t, "alone", callOf(e))
	_, err = client.NewBarrier(rig.Name(t)+"one", 1).Await(inCall(t.Context(), "complete"))
	require.NoError(t, err)
	assert.Equal(t, "complete", callOf(next(latchkey.EventOpened)))
}
