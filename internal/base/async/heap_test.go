package async

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type dueThing struct {
	due   time.Duration
	index int
}

func (e *dueThing) DueAt() time.Duration { return e.due }
func (e *dueThing) HeapIndex() *int      { return &e.index }

// Items come out in the order in which they are due, whatever is added, moved and removed.
func TestDueHeap_keeps_the_order(t *testing.T) {
	var h Heap[*dueThing]
	require.Equal(t, NoDeadline, h.Next())
	all := make([]*dueThing, 100)
	for i := range all {
		all[i] = &dueThing{due: rand.N(time.Hour), index: NotInHeap}
		h.Put(all[i])
	}
	for i, each := range all {
		switch i % 3 {
		case 0:
			h.Remove(each)
			h.Remove(each)
			require.Equal(t, NotInHeap, each.index)
		case 1:
			each.due = rand.N(time.Hour)
			h.Put(each)
		}
	}
	left := 66
	for last := time.Duration(0); h.Next() != NoDeadline; left-- {
		require.GreaterOrEqual(t, h.Next(), last)
		last = h.Next()
		require.Equal(t, NotInHeap, h.TakeFirst().index)
	}
	require.Zero(t, left)
}
