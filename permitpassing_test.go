package latchkey

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// newPermitQueue returns a wait queue whose front wants that many permits, and whose client has permits to pass on.
func newPermitQueue(wants int) (q *waitQueue, front *permitRequest) {
	q, front = newWaitQueues(noHolds{}).use(lineKey{key: "job"}), &permitRequest{count: wants}
	q.join(front)
	q.permitsGranted(10, time.Minute)
	return q, front
}

// A front that is passed permits just as its wait ends has them.
func TestPassPermits_to_a_front_that_gives_up(t *testing.T) {
	q, front := newPermitQueue(1)
	require.True(t, q.passPermits(1))
	require.True(t, front.passed)
	require.True(t, q.frontEnds(front))
	require.False(t, q.passPermits(1), "nobody waits any more")
}

// The same is true for a waiter that has come to the front and does not know it yet.
func TestPassPermits_to_one_that_comes_to_the_front(t *testing.T) {
	q, front := newPermitQueue(1)
	next := &permitRequest{count: 1}
	w := q.join(next)
	q.frontEnds(front)
	q.leaveFront()
	require.True(t, q.passPermits(1))
	require.Equal(t, received, q.leave(w))
	require.Nil(t, q.join(&permitRequest{count: 1}), "the front is free")
}

// While the front polls, waiters behind it are served in order, unless the front wants more permits.
func TestPassPermits_in_order(t *testing.T) {
	q, front := newPermitQueue(2)
	first, second := &permitRequest{count: 2}, &permitRequest{count: 2}
	w := q.join(first)
	q.join(second)
	q.frontAttempts(front, true)
	require.False(t, q.passPermits(1), "the front wants more")
	require.True(t, q.passPermits(2))
	require.True(t, first.passed)
	require.False(t, front.passed || second.passed)
	at, err := q.await(context.Background(), nil, w)
	require.NoError(t, err)
	require.Equal(t, received, at)
	q.frontRests(front, ErrNotAcquired)
	require.False(t, q.passPermits(3), "not as many as are asked for")
	require.True(t, q.passPermits(4))
	require.True(t, front.passed && second.passed)
}

// The turn of granted permits ends on its own. After that, a release goes to the server.
func TestPassPermits_for_a_turn(t *testing.T) {
	q, _ := newPermitQueue(1)
	q.endTurns()
	require.False(t, q.passPermits(1))
	q.permitsGranted(1, time.Minute)
	require.False(t, q.passPermits(1), "those whose turn is over come first")
	q.permitsReturn(10)
	require.True(t, q.passPermits(1))
}

// Among the clients that learn of available permits, the first to try are those that have seen the most releases since
// their last grant. A client that has permits to pass on tries last.
func TestPassPermits_in_the_order_of_clients(t *testing.T) {
	q, _ := newPermitQueue(1)
	require.GreaterOrEqual(t, q.pauseForOthers(), yieldFor/2, "it has some to pass on")
	q.permitsReturn(10)
	q.permitsReturned(10, listeners{count: 4, clients: 4, known: true, all: true})
	for last := yieldFor; last > 0; last = q.pauseForOthers() {
		q.message("10")
		require.Less(t, q.pauseForOthers(), last)
	}
	require.Equal(t, 4, q.permits.releasesHeard, "each of the others has had its turn")
	q.permitsGranted(1, -1)
	require.Zero(t, q.permits.releasesHeard)
}

// If there were too few permits, the front tries after a release only when others have had time to. It does not wait if
// nobody else listens, or if it is passed permits.
func TestPassPermits_tries_after_others(t *testing.T) {
	q, front := newPermitQueue(1)
	q.frontRests(front, ErrNotAcquired)
	q.permitsReturn(5)
	require.Positive(t, q.yieldPause())
	q.permitsReturned(5, listeners{count: 2, clients: 2, known: true, all: true})
	require.Positive(t, q.yieldPause(), "another client listens")
	require.True(t, q.passPermits(1))
	require.True(t, front.passed)
	require.Zero(t, q.yieldPause())
	front.passed = false
	q.permitsReturned(5, listeners{count: 0, known: true, all: true})
	require.Zero(t, q.yieldPause(), "nobody else listens")
}

// besideStrangers returns a wait queue of one client and two strangers.
func besideStrangers() *waitQueue {
	q, _ := newPermitQueue(1)
	q.permitsReturn(10)
	q.permitsReturned(10, listeners{count: 3, clients: 1, known: true, all: true})
	return q
}

// With strangers present, a client tries later if it has had more than its share, and passes permits on if it has had
// less.
func TestPassPermits_shares_with_strangers(t *testing.T) {
	q := besideStrangers()
	require.Zero(t, q.yieldPause())
	q.permitsGranted(1, time.Minute)
	require.Positive(t, q.yieldPause(), "two strangers have had nothing")
	require.LessOrEqual(t, q.yieldPause(), strangerPause)
	require.False(t, q.passPermits(1))
	q.permitsGranted(2, -1)
	q.permitsGranted(1, -1)
	require.Greater(t, q.yieldPause(), strangerPause, "they were slow")
	for range 6 {
		require.Positive(t, q.yieldPause())
		q.message("1")
	}
	require.Zero(t, q.yieldPause())
	q.message("1")
	require.False(t, q.passPermits(1))
	q.message("1")
	require.True(t, q.passPermits(1), "its share is passed on")
	require.False(t, q.mayPassPermits(1))
}

// Messages of a client's own releases say nothing about others. The client does not wait for strangers that take
// nothing.
func TestPassPermits_beside_strangers_that_take_nothing(t *testing.T) {
	q := besideStrangers()
	q.sub = &subscription{}
	q.sub.confirmed.Store(true)
	for range 1 + maxUselessPauses {
		require.True(t, q.permits.unclaimedUntil.IsZero())
		q.permitsGranted(1, -1)
		q.permitsReturn(1)
		q.message("1")
		q.permitsReturned(1, listeners{count: 3, clients: 1, known: true, all: true})
	}
	require.Zero(t, q.yieldPause())
	q.permits.unclaimedUntil = time.Now()
	q.message("1")
	require.Positive(t, q.yieldPause())
	q.permitsReturn(1)
	q.permitsReturned(1, listeners{count: 1, clients: 1, known: true, all: true})
	q.message("1")
	require.Zero(t, q.yieldPause(), "nobody listens any more")
}
