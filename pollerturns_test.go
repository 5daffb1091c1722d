package latchkey

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// afterTurn returns a wait queue of a client that has held its mutex for a whole turn.
func afterTurn(lasted time.Duration) *waitQueue {
	q := newWaitQueues(noHolds{}).use(lineKey{key: "job"})
	q.openFor(time.Now())
	q.pollers.oursSince = q.pollers.oursSince.Add(-lasted)
	q.pollers.oursBegan = q.pollers.oursSince
	return q
}

// A client that would take a mutex again at once leaves it free briefly after a turn, whether other callers are already
// in line at that release or come right after it.
func TestPollerTurns_of_pollers_that_are_not_seen(t *testing.T) {
	q := afterTurn(unseenTurn)
	require.Equal(t, unseenOpen, q.openFor(time.Now()))
	q.leftFree(unseenOpen, false)
	assert.True(t, q.isOpen())
	assert.Zero(t, q.openFor(time.Now()), "a turn has begun")
	assert.Equal(t, 2*unseenTurn, q.pollers.mayLast, "nobody has come")
}

// A mutex that was free for that long during the turn need not be left free.
func TestPollerTurns_of_a_mutex_that_is_free_at_times(t *testing.T) {
	q := afterTurn(unseenTurn)
	q.leftFree(0, false)
	require.Zero(t, q.openFor(time.Now().Add(unseenOpen)))
	assert.WithinDuration(t, time.Now(), q.pollers.oursSince, unseenTurn/2, "a turn has begun")
}

// The turn of a poller begins when it is seen in the time for which the mutex is left free, and lasts half as long as
// that of this client.
func TestPollerTurns_begin_when_a_poller_is_seen(t *testing.T) {
	q := afterTurn(time.Second)
	q.leftFree(unseenOpen, false)
	pause := q.pollerHolds("token")
	assert.False(t, q.isOpen())
	assert.Greater(t, pause, pollSlow/2-time.Millisecond)
	q.pollers.since = q.pollers.since.Add(-time.Second)
	assert.LessOrEqual(t, q.pollerHolds("another token"), pollFast*5/4)
	assert.Zero(t, q.openFor(time.Now()))
	assert.InDelta(t, time.Second, q.pollers.mayLast, float64(100*time.Millisecond), "as long as they had it")
}
