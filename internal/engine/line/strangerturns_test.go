package line

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
