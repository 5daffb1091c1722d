package latchkey

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type dueThing struct {
	due   time.Duration
	index int32
}

func (e *dueThing) dueAt() time.Duration { return e.due }
func (e *dueThing) heapIndex() *int32    { return &e.index }

// Items come out in the order in which they are due, whatever is added, moved and removed.
func TestDueHeap_keeps_the_order(t *testing.T) {
	var h dueHeap[*dueThing]
	require.Equal(t, noDeadline, h.next())
	all := make([]*dueThing, 100)
	for i := range all {
		all[i] = &dueThing{due: rand.N(time.Hour), index: notInHeap}
		h.put(all[i])
	}
	for i, each := range all {
		switch i % 3 {
		case 0:
			h.remove(each)
			h.remove(each)
			require.EqualValues(t, notInHeap, each.index)
		case 1:
			each.due = rand.N(time.Hour)
			h.put(each)
		}
	}
	left := 66
	for last := time.Duration(0); h.next() != noDeadline; left-- {
		require.GreaterOrEqual(t, h.next(), last)
		last = h.next()
		require.EqualValues(t, notInHeap, h.takeFirst().index)
	}
	require.Zero(t, left)
}
