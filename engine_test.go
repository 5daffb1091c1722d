package latchkey

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/ownership"
	"github.com/latchkey-go/latchkey/internal/engine/report"
)

func TestWaitQueues_vanish_when_unused(t *testing.T) {
	c := newTestClient(t, Options{})
	var owned []weak.Pointer[ownership.Ownership]
	for i := range 100 {
		lock := c.NewLock(uniqueName(t, c) + string(rune('a'+i%26)))
		h, err := lock.Lock(context.Background())
		require.NoError(t, err)
		owned = append(owned, weak.Make(ownershipOf(h)))
		require.NoError(t, h.Unlock(context.Background()))
		require.Nil(t, c.engine().Lines.Known(lock.inside.LineKey()))
	}
	require.Empty(t, c.engine().Registry.All())
	require.Empty(t, c.engine().Lines.Held())
	require.Eventually(t, func() bool {
		collectGarbage()
		return !slices.ContainsFunc(owned, func(o weak.Pointer[ownership.Ownership]) bool { return o.Value() != nil })
	}, time.Minute, time.Millisecond, "nothing of the client knows an ownership that is over")
}

// fakeClock has a monotonic and a wall clock that diverge on request.
type fakeClock struct{ sleep atomic.Int64 }

func (f *fakeClock) now() lease.Stamp {
	s := lease.SystemClock()
	s.Wall += time.Duration(f.sleep.Load())
	return s
}

func TestHold_is_lost_when_the_machine_has_slept(t *testing.T) {
	var clock fakeClock
	c := newTestClient(t, Options{clock: clock.now, Logger: quiet()})
	h, err := c.NewLock(uniqueName(t, c)).Lock(context.Background())
	require.NoError(t, err)
	work := h.Context(context.Background())
	clock.sleep.Add(int64(31 * time.Second)) // the monotonic clock stood still
	require.ErrorIs(t, h.Err(), ErrLost, "the first look tells")
	<-work.Done()
	require.ErrorIs(t, context.Cause(work), ErrLost)
	require.ErrorIs(t, h.Unlock(context.Background()), ErrNotHeld)
}

func TestHold_loss_is_signaled_when_the_machine_has_slept(t *testing.T) {
	var clock fakeClock
	c := newTestClient(t, Options{clock: clock.now, Logger: quiet()})
	h, err := c.NewLock(uniqueName(t, c)).Lock(context.Background())
	require.NoError(t, err)
	clock.sleep.Add(int64(31 * time.Second))
	select {
	case <-h.Lost(): // nobody looked
	case <-time.After(DefaultLease - 5*time.Second):
		t.Fatal("the loss was not signaled")
	}
}

// Contexts end soon after the machine wakes up. How soon does not depend on other events.
func TestContext_ends_soon_after_the_machine_has_slept(t *testing.T) {
	var clock fakeClock
	c := newTestClient(t, Options{clock: clock.now, Logger: quiet()})
	best := time.Hour
	for i := 0; i < 20 && best >= 250*time.Millisecond; i++ { // on a busy machine most are late
		h, err := c.NewLock(fmt.Sprint(uniqueName(t, c), i)).Lock(context.Background(), Lease(time.Minute))
		require.NoError(t, err)
		work := h.Context(context.Background())
		time.Sleep(20 * time.Millisecond) // until the watchdog sleeps, most often
		clock.sleep.Add(int64(time.Minute))
		awake := time.Now()
		<-work.Done()
		best = min(best, time.Since(awake))
	}
	require.Less(t, best, 250*time.Millisecond)
}

// The machine sleeps for a large part of the lease. The hold is renewed at once, because the rest of the lease is
// too short to wait for a third of it.
func TestWatchdog_renews_what_the_machine_has_nearly_overslept(t *testing.T) {
	var clock fakeClock
	c := newTestClient(t, Options{clock: clock.now, Logger: quiet()})
	h, err := c.NewLock(uniqueName(t, c)).Lock(context.Background())
	require.NoError(t, err)
	time.Sleep(20 * time.Millisecond) // until the watchdog sleeps, most often
	clock.sleep.Add(int64(DefaultLease * 8 / 10))
	require.Eventually(t, func() bool { return h.Err() != nil || h.ValidFor() > DefaultLease/2 }, DefaultLease, time.Millisecond)
	require.NoError(t, h.Err())
	require.NoError(t, h.Unlock(context.Background()))
}

func TestClient_dropped_hold_is_reported(t *testing.T) {
	for what, o := range map[string]Options{"from the start": {ReportDropped: true}, "once renewed": {Lease: time.Second}} {
		t.Run(what, func(t *testing.T) { droppedHoldIsReported(t, o) })
	}
}

func droppedHoldIsReported(t *testing.T, o Options) {
	t.Helper()
	logged := make(chan string, 10)
	o.Logger = logTo(logged)
	c := newTestClient(t, o)
	func() {
		_, err := c.NewLock(uniqueName(t, c)).Lock(context.Background())
		require.NoError(t, err)
	}()
	require.Eventually(t, func() bool {
		collectGarbage()
		select {
		case text := <-logged:
			return text == report.NoticeUnreleased.Text
		default:
			return false
		}
	}, time.Minute, time.Millisecond)
}

func TestBorrowed_client_stays_open(t *testing.T) {
	mine := newTestClient(t, Options{})
	c, err := New(mine.engine().Rueidis, Options{})
	require.NoError(t, err)
	h, err := c.NewLock(uniqueName(t, c)).Lock(context.Background())
	require.NoError(t, err)
	require.NoError(t, c.Close(context.Background()))
	require.ErrorIs(t, h.Err(), ErrClosed)
	require.NoError(t, mine.engine().Rueidis.Do(context.Background(), mine.engine().Rueidis.B().Ping().Build()).Error())
	locked, err := mine.NewLock(h.Name()).IsLocked(context.Background())
	require.NoError(t, err)
	require.False(t, locked, "Close releases holds")
	_, err = c.NewLock("x").Lock(context.Background())
	require.ErrorIs(t, err, ErrClosed)
	_, err = New(nil, Options{})
	require.ErrorIs(t, err, ErrInvalid)
}
