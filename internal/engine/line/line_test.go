package line

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
)

func TestLine_lets_waiters_in_one_by_one_in_order(t *testing.T) {
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
	return len(q.waiters)
}

func TestLine_leaver_in_line_is_skipped(t *testing.T) {
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

func TestLine_own_message_wakes_nobody(t *testing.T) {
	all := NewTable()
	q := all.Use(Key{Key: "job"})
	q.sub = &pubsub.Subscription{To: q}
	q.sub.Confirmed.Store(true)
	h := newFakeHold(all, "job")
	h.links.HoldBegins()
	h.links.IgnoreOwnRelease()
	require.True(t, h.links.echo)
	q.Message("0") // our own
	require.Empty(t, q.signals)
	q.Message("0") // somebody else's
	require.Len(t, q.signals, 1)
	q.drain()
	h.links.IgnoreOwnRelease()
	require.True(t, h.links.echo)
	h.links.HoldEnds(true, nil) // nothing was published after all
	q.drain()
	q.Message("0")
	require.Len(t, q.signals, 1, "the next message is not ours")
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

// A line stays for a while after its last user if it has a subscription, and a subscription on
// which nobody relies ends before the line.
func TestLine_retires(t *testing.T) {
	all, key := NewTable(), Key{Key: "job"}
	q := all.Use(key)
	q.sub = &pubsub.Subscription{To: q}
	require.False(t, q.Retire(0), "it has a user")
	q.RelyFor(-time.Second)
	require.True(t, q.Retire(time.Hour), "nobody relies on it")
	require.Nil(t, q.sub)
	require.Same(t, q, all.Known(key))
	q.sub = &pubsub.Subscription{To: q}
	q.Done()
	require.False(t, q.Retire(time.Hour))
	require.Same(t, q, all.Known(key), "it lingers")
	q.DoNotLinger()
	require.True(t, q.Retire(time.Hour))
	require.Nil(t, all.Known(key))
}

// A waiter that leaves the front when it has just come there makes way for the next.
func TestWaiter_leaves_the_front(t *testing.T) {
	all, key := NewTable(), Key{Key: "job"}
	q, _, _ := all.enter(key, Only, nil, nil)
	_, first, _ := all.enter(key, Only, nil, nil)
	_, second, _ := all.enter(key, Only, nil, nil)
	q.leaveFront()
	require.Equal(t, leftLine, first.leave())
	require.True(t, async.IsClosed(second.ready))
	require.Zero(t, q.waiting())
}

// The last signal counts once.
func TestLine_takes_a_signal(t *testing.T) {
	q := NewTable().Use(Key{Key: "job"})
	require.False(t, q.TakeSignal())
	q.WakeFront()
	require.False(t, q.TakeSignal(), "the front need not query the server")
	q.Signal()
	q.drain()
	require.True(t, q.TakeSignal())
	require.False(t, q.TakeSignal())
}

// Waiters that leave in the order of their arrival, as at one deadline, cost each other nothing,
// and the line does not keep their memory.
func TestWaiters_leave_in_order(t *testing.T) {
	q := NewTable().Use(Key{Key: "a"})
	q.busy = true
	waiters := make([]*Waiter, 100_000)
	for i := range waiters {
		waiters[i] = q.join(nil)
	}
	began := time.Now()
	for _, w := range waiters {
		require.True(t, w.remove())
	}
	require.Less(t, time.Since(began), 10*time.Second, "a move of the rest for each of them takes longer")
	require.Nil(t, q.waiters)
}
