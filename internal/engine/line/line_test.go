package line

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
)

func TestWaitQueue_lets_waiters_in_one_by_one_in_order(t *testing.T) {
	q := NewTable().Use(Key{Key: "job"})
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

func (q *Line) waiting() int {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return len(q.line)
}

func TestWaitQueue_leaver_in_line_is_skipped(t *testing.T) {
	q := NewTable().Use(Key{Key: "job"})
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

func TestWaitQueue_own_message_wakes_nobody(t *testing.T) {
	q := NewTable().Use(Key{Key: "job"})
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

// The front may be gone when the time that it left to strangers is over. The next user of the line is not
// woken by that.
func TestWaitQueue_a_pause_for_strangers_outlives_all_users(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := NewTable()
		q := all.Use(Key{Key: "job"})
		q.TakeTurns()
		q.sub = &pubsub.Subscription{To: q}
		q.Message(strangersFirst) // their time begins
		q.reliedUntil = time.Now().Add(-time.Second)
		require.True(t, q.Retire(0), "nobody relies on the subscription")
		q.Done()
		time.Sleep(2 * strangerPause) // a timer of the queue is running
		synctest.Wait()
		again := all.Use(Key{Key: "job"})
		require.Same(t, q, again)
		require.Empty(t, again.signals)
		require.False(t, again.signaled)
	})
}

// awaitFront joins the line and returns when the caller is at the front.
func awaitFront(ctx context.Context, q *Line, stop <-chan struct{}) error {
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
func (q *Line) leaveFront() {
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	q.next()
}
