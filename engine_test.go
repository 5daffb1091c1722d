package latchkey

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
	"github.com/latchkey-go/latchkey/internal/engine/report"
)

func TestWaitQueue_lets_waiters_in_one_by_one_in_order(t *testing.T) {
	q := newWaitQueues().use(lineKey{key: "job"})
	ctx := context.Background()
	require.NoError(t, awaitFront(ctx, q, nil))
	const waiters = 100
	entered := make(chan int, waiters)
	for i := range waiters {
		before := q.waiting()
		go func() {
			if awaitFront(ctx, q, nil) == nil {
				entered <- i
				q.leaveFront()
			}
		}()
		require.Eventually(t, func() bool { return q.waiting() > before }, time.Minute, time.Microsecond)
	}
	q.leaveFront()
	for i := range waiters {
		require.Equal(t, i, <-entered)
	}
}

func (q *waitQueue) waiting() int {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return len(q.line)
}

func TestWaitQueue_leaver_in_line_is_skipped(t *testing.T) {
	q := newWaitQueues().use(lineKey{key: "job"})
	require.NoError(t, awaitFront(context.Background(), q, nil))
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan error, 1)
	go func() { left <- awaitFront(ctx, q, nil) }()
	require.Eventually(t, func() bool { return q.waiting() == 1 }, time.Minute, time.Microsecond)
	cancel()
	require.ErrorIs(t, <-left, context.Canceled)
	require.Zero(t, q.waiting())
	q.leaveFront()
	require.NoError(t, awaitFront(context.Background(), q, nil))
}

func TestWaitQueues_vanish_when_unused(t *testing.T) {
	c := newTestClient(t, Options{})
	for i := range 100 {
		h, err := c.NewLock(uniqueName(t, c) + string(rune('a'+i%26))).Lock(context.Background())
		require.NoError(t, err)
		require.NoError(t, h.Unlock(context.Background()))
	}
	for i := range c.waitQueues.shards {
		require.Empty(t, c.waitQueues.shards[i].queues)
	}
	require.Empty(t, c.registry.all())
	c.watchdog.mu.Lock()
	defer c.watchdog.mu.Unlock()
	require.Empty(t, c.watchdog.queue)
}

func TestWaitQueue_own_message_wakes_nobody(t *testing.T) {
	q := newWaitQueues().use(lineKey{key: "job"})
	q.sub = &pubsub.Subscription{To: q}
	q.sub.Confirmed.Store(true)
	q.countHold(true)
	require.True(t, q.releaseBegins())
	q.Message("0") // our own
	require.Empty(t, q.signals)
	q.Message("0") // somebody else's
	require.Len(t, q.signals, 1)
	q.drain()
	require.True(t, q.releaseBegins())
	q.endHold(true, true, nil) // nothing was published after all
	q.drain()
	q.Message("0")
	require.Len(t, q.signals, 1, "the next message is not ours")
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

func TestWatchdog_notices_that_the_machine_has_slept(t *testing.T) {
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
		require.Eventually(t, c.watchdog.asleep, time.Minute, time.Microsecond)
		clock.sleep.Add(int64(time.Minute))
		awake := time.Now()
		<-work.Done()
		best = min(best, time.Since(awake))
	}
	require.Less(t, best, 250*time.Millisecond)
}

// asleep reports whether the timekeeper sleeps.
func (w *watchdog) asleep() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wakeAt > w.clock().Mono && len(w.signals) == 0
}

// The machine sleeps for a large part of the lease. The hold is renewed at once, because the rest of the lease is
// too short to wait for a third of it.
func TestWatchdog_renews_what_the_machine_has_nearly_overslept(t *testing.T) {
	var clock fakeClock
	c := newTestClient(t, Options{clock: clock.now, Logger: quiet()})
	h, err := c.NewLock(uniqueName(t, c)).Lock(context.Background())
	require.NoError(t, err)
	require.Eventually(t, c.watchdog.asleep, time.Minute, time.Microsecond)
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
	c, err := New(mine.rueidis, Options{})
	require.NoError(t, err)
	h, err := c.NewLock(uniqueName(t, c)).Lock(context.Background())
	require.NoError(t, err)
	require.NoError(t, c.Close(context.Background()))
	require.ErrorIs(t, h.Err(), ErrClosed)
	require.NoError(t, mine.rueidis.Do(context.Background(), mine.rueidis.B().Ping().Build()).Error())
	locked, err := mine.NewLock(h.Name()).IsLocked(context.Background())
	require.NoError(t, err)
	require.False(t, locked, "Close releases holds")
	_, err = c.NewLock("x").Lock(context.Background())
	require.ErrorIs(t, err, ErrClosed)
	_, err = New(nil, Options{})
	require.ErrorIs(t, err, ErrInvalid)
}

// awaitFront joins the line and returns when the caller is at the front.
func awaitFront(ctx context.Context, q *waitQueue, stop <-chan struct{}) error {
	q.shard.mu.Lock()
	w := q.join(nil)
	q.shard.mu.Unlock()
	if w == nil {
		return nil
	}
	_, err := w.await(ctx, stop)
	return err
}

// leaveFront leaves the front to the next in line.
func (q *waitQueue) leaveFront() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.next()
}
