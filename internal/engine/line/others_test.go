package line

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/engine/turns"
)

// A message on the second channel says that the next one is for strangers. A line shares with
// nobody at first.
func TestShare_of_a_queue(t *testing.T) {
	q := NewTable().Use(Key{})
	q.SharesWith(0)
	require.Equal(t, turns.Alone, q.Standing())
	q.SharesWith(2)
	require.Equal(t, turns.Even, q.Standing())
	q.share.Concerns(true, time.Now())
	require.Equal(t, turns.Short, q.Standing())
	q.HadPermits()
	require.Equal(t, turns.Even, q.Standing())
	Presence{ForStrangers: q.forStrangers}.Message("")
	require.False(t, q.share.Concerns(true, time.Now()))
	require.True(t, q.share.Concerns(true, time.Now()))
}

// A client that has had enough lets strangers go first when one of them releases permits. A new
// subscription wakes its front at once.
func TestShare_of_a_message(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewTable().Use(Key{})
		q.SharesWith(1)
		q.HadPermits()
		q.Message("1")
		require.False(t, woken(q))
		time.Sleep(turns.StrangerPause)
		synctest.Wait()
		require.True(t, woken(q))
		q.Reconnected()
		require.True(t, woken(q))
	})
}

// After some pauses that strangers did not use, a release seldom pauses. One that holds the lock
// changes that.
func TestStrangers_unused_pauses_become_rare(t *testing.T) {
	all := NewTable()
	q, h := all.Use(Key{Key: "job"}), newFakeHold(all, "job")
	paused := func() bool {
		q.openUntil = time.Time{}
		h.links.ReceiversSeen(1)
		return q.openLeft() > 0
	}
	for range turns.UnusedPauses {
		require.True(t, paused())
	}
	n := 0
	for range 4 * turns.UnusedPauses {
		if paused() {
			n++
		}
	}
	assert.Equal(t, 4, n)
	q.StrangerHolds(true)
	assert.True(t, paused())
}

// A pause for strangers does not shorten a longer one.
func TestStrangers_longer_pause_stays(t *testing.T) {
	all := NewTable()
	q := all.Use(Key{Key: "job"})
	q.openUntil = time.Now().Add(time.Hour)
	newFakeHold(all, "job").links.ReceiversSeen(1)
	assert.Greater(t, q.openLeft(), time.Minute)
}

// The front does not pause while a mutex is left to other libraries, if one of them is found to
// hold it.
func TestRecipe_leaves_a_mutex_to_other_libraries(t *testing.T) {
	all := NewTable()
	q, h := all.Use(Key{Key: "job"}), newFakeHold(all, "job")
	h.links.HoldBegins()
	h.links.LeftFree(50*time.Millisecond, true)
	assert.Zero(t, q.openLeft(), "the server gave it to a client of this library")
	h.links.LeftFree(50*time.Millisecond, false)
	assert.Positive(t, q.openLeft())
	q.RecipeHolds("a token")
	assert.Zero(t, q.openLeft(), "another library has found it")
}
