package transport

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redis/rueidis"
)

func atOnce() time.Duration { return 0 }

// A silent node gets one command at a time. When it answers, all work is done in order, with as
// many pieces at a time as there are places.
func TestNodeLine_probes_a_silent_node_once(t *testing.T) {
	const places, all, silence = 4, 100, 5
	line := LineOf[int](NewTopology(false, 1).common, t, places)
	require.True(t, line.Add(0), "nobody serves it")
	for i := 1; i < all; i++ {
		require.False(t, line.Add(i))
	}
	var asked, underWay, done atomic.Int32
	line.Serve(t.Context(), atOnce, func(i int) bool {
		now := underWay.Add(1)
		defer underWay.Add(-1)
		if asked.Add(1) <= silence {
			require.EqualValues(t, 1, now)
			line.Add(i)
			return false
		}
		require.LessOrEqual(t, now, int32(places))
		done.Add(1)
		return true
	})
	require.EqualValues(t, all, done.Load())
	require.True(t, line.Add(all), "it has been left")
}

func TestNodeLine_of_a_silent_node_is_bounded(t *testing.T) {
	line := LineOf[int](NewTopology(false, 1).common, t, 1)
	odd := func(i int) bool { return i%2 == 1 }
	for i := range 4 {
		line.Add(i)
	}
	_, found := line.Shorten(3, odd)
	require.False(t, found, "the node is not silent")
	line.note(false)
	out, found := line.Shorten(3, odd)
	require.True(t, found)
	require.Equal(t, 1, out)
	_, found = line.Shorten(3, odd)
	require.False(t, found)
	require.Equal(t, []int{0, 2, 3}, line.TakeAll())
}

// What is kept for a node is dropped with it.
func TestNodeLine_is_forgotten_with_its_node(t *testing.T) {
	topology := NewTopology(true, 1)
	line := LineOf[int](topology.node("gone:1"), t, 1)
	require.Same(t, line, LineOf[int](topology.node("gone:1"), t, 1))
	topology.forget(map[string]rueidis.Client{}, &slotOwners{nodes: []*Node{topology.common}})
	require.NotSame(t, line, LineOf[int](topology.node("gone:1"), t, 1))
}
