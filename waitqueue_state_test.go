package latchkey

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stateOf is what the client has of a key besides its holds.
func stateOf(c *Client, key string) *waitState {
	q := c.waitQueues.known(key)
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	return q.waitState
}

func TestWaitState_a_hold_that_nobody_contends_for_has_none(t *testing.T) {
	c := newTestClient(t, Options{})
	ctx := context.Background()
	for what, lock := range map[string]Locker{
		"lock": c.NewLock(uniqueName(t, c) + "lock"), "mutex": c.NewMutex(uniqueName(t, c) + "mutex"),
		"fenced": c.NewFencedLock(uniqueName(t, c) + "fenced"),
	} {
		for try, acquire := range map[string]func() (*Hold, error){
			"Lock":    func() (*Hold, error) { return lock.Lock(ctx) },
			"TryLock": func() (*Hold, error) { return lock.TryLock(ctx) },
		} {
			h, err := acquire()
			require.NoError(t, err)
			require.Nil(t, stateOf(c, lock.Name()), "%s %s", what, try)
			require.NoError(t, h.Unlock(ctx))
		}
	}
}

// A waiter that comes and goes leaves a state behind, since it may have learned something.
func TestWaitState_stays_where_somebody_waited(t *testing.T) {
	c := newTestClient(t, Options{})
	ctx := context.Background()
	lock := c.NewLock(uniqueName(t, c))
	h, err := lock.Lock(ctx)
	require.NoError(t, err)
	gone, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { _, err := lock.Lock(gone); ended <- err }()
	require.Eventually(t, func() bool { return c.waitQueues.known(lock.key).hasLine() }, 5*time.Second, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.NotNil(t, stateOf(c, lock.key))
	require.NoError(t, h.Unlock(ctx))
	require.Nil(t, c.waitQueues.known(lock.key), "it goes with the last user")
}

// What wakes a front finds none, and does no harm.
func TestWaitState_hints_without_a_state(t *testing.T) {
	all := newWaitQueues()
	q, passes := all.holdBegins("job", onlyLine)
	require.Equal(t, endlessPasses, passes)
	q.signal()
	q.wakeFronts()
	q.message("0")
	q.reconnected()
	require.Nil(t, q.first())
	require.Nil(t, q.takeFirst(nil))
	require.False(t, q.hasLine())
	require.Nil(t, q.opened())
	require.True(t, q.retire(0))
	require.Zero(t, q.openFor(time.Now()))
	q.leftFree(0, false)
	require.ErrorIs(t, q.waitError(context.Background(), ErrClosed, nil), ErrClosed)
	require.False(t, q.releaseBegins())
	q.strangersTold(0)
	require.Nil(t, q.waitState)
	q.strangersTold(1)
	require.NotNil(t, q.waitState, "others want the key")
	require.Nil(t, q.holdReleased(1, true, true, nil))
	require.Nil(t, all.known("job"))
}

// One who comes while only holds are left waits, and comes to the front at the release.
func TestWaitState_comes_with_the_first_waiter(t *testing.T) {
	all := newWaitQueues()
	held, _ := all.holdBegins("job", onlyLine)
	q, w, _ := all.enter("job", onlyLine, nil)
	require.Same(t, held, q)
	require.NotNil(t, w)
	require.Nil(t, held.holdReleased(0, false, true, nil))
	at, err := q.await(context.Background(), nil, w)
	require.NoError(t, err)
	require.Equal(t, inFront, at)
	require.Nil(t, q.exit(nil))
	require.Nil(t, all.known("job"))
}

// A front that lets strangers go first may be gone when their time is over.
func TestWaitState_a_pause_for_strangers_outlives_all_users(t *testing.T) {
	all := newWaitQueues()
	q := all.use("job")
	q.takeTurns()
	q.sub = &subscription{to: q}
	q.message(strangersFirst) // their time begins
	q.reliedUntil = time.Now().Add(-time.Second)
	require.True(t, q.retire(0), "nobody relies on the subscription")
	q.done()
	require.Nil(t, q.waitState)
	time.Sleep(2 * strangerPause) // a timer of the queue runs meanwhile, and must find nothing
	q.shard.mu.Lock()
	defer q.shard.mu.Unlock()
	require.Nil(t, q.waitState)
}
