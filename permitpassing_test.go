package latchkey

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// newPermitQueue returns a wait queue with a front that wants so many permits, and its client has
// some to pass on.
func newPermitQueue(wants int) (q *waitQueue, front *permitRequest) {
	q, front = newWaitQueues().use("job"), &permitRequest{count: wants}
	q.join(front)
	q.permitsGranted(10, time.Minute)
	return q, front
}

// A front that is passed permits in the moment in which its wait ends has them.
func TestPassPermits_to_a_front_that_gives_up(t *testing.T) {
	q, front := newPermitQueue(1)
	require.True(t, q.passPermits(1))
	require.True(t, front.passed)
	require.True(t, q.frontEnds())
	require.False(t, q.passPermits(1), "nobody waits any more")
}

// So has one that has come to the front, and does not know it yet.
func TestPassPermits_to_one_that_comes_to_the_front(t *testing.T) {
	q, _ := newPermitQueue(1)
	next := &permitRequest{count: 1}
	w := q.join(next)
	q.frontEnds()
	q.leaveFront(nil)
	require.True(t, q.passPermits(1))
	require.Equal(t, hasHold, q.leave(w))
	require.Nil(t, q.join(&permitRequest{count: 1}), "the front is free")
}

// While the front asks, those behind it are served in their order, unless it wants more.
func TestPassPermits_in_order(t *testing.T) {
	q, front := newPermitQueue(2)
	first, second := &permitRequest{count: 2}, &permitRequest{count: 2}
	w := q.join(first)
	q.join(second)
	q.frontAsks(true)
	require.False(t, q.passPermits(1), "the front wants more")
	require.True(t, q.passPermits(2))
	require.True(t, first.passed)
	require.False(t, front.passed || second.passed)
	at, err := q.await(context.Background(), nil, w)
	require.NoError(t, err)
	require.Equal(t, hasHold, at)
	q.frontRests(ErrNotAcquired)
	require.False(t, q.passPermits(3), "not as many as are asked for")
	require.True(t, q.passPermits(4))
	require.True(t, front.passed && second.passed)
}

// The turn of permits that were granted ends for itself, and a release goes to the server then.
func TestPassPermits_for_a_turn(t *testing.T) {
	q, _ := newPermitQueue(1)
	q.endTurns()
	require.False(t, q.passPermits(1))
	q.permitsGranted(1, time.Minute)
	require.False(t, q.passPermits(1), "those whose turn is over come first")
	q.permitsReturn(10)
	require.True(t, q.passPermits(1))
}
