package latchkey

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// After some pauses that strangers did not use, a release seldom pauses. One that holds the lock changes that.
func TestStrangers_unused_pauses_become_rare(t *testing.T) {
	q := newWaitQueues().use(lineKey{key: "job"})
	paused := func() bool {
		q.openUntil = time.Time{}
		q.noteStrangers()
		return q.openLeft() > 0
	}
	for range unusedPauses {
		require.True(t, paused())
	}
	n := 0
	for range 4 * unusedPauses {
		if paused() {
			n++
		}
	}
	assert.Equal(t, 4, n)
	q.strangerHolds(true)
	assert.True(t, paused())
}

// A pause for strangers does not shorten a longer one.
func TestStrangers_longer_pause_stays(t *testing.T) {
	q := newWaitQueues().use(lineKey{key: "job"})
	q.openUntil = time.Now().Add(time.Hour)
	q.noteStrangers()
	assert.Greater(t, q.openLeft(), time.Minute)
}

// A call that ends before the pause is over asks at once: the lock may be free.
func TestStrangers_a_call_with_little_time_does_not_pause(t *testing.T) {
	c := newTestClient(t, Options{})
	lock := c.NewLock(uniqueName(t, c))
	c.waitQueues.use(lock.lineKey()).openUntil = time.Now().Add(time.Hour)
	h, err := lock.Lock(t.Context(), Wait(30*time.Second))
	require.NoError(t, err)
	require.NoError(t, h.Unlock(t.Context()))
}
