package nodes

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redis/rueidis"
)

func atOnce() time.Duration { return 0 }

// While a node answers, as many pieces of work are under way as the backlog allows, also if there
// was less to do when it began. While it is silent, there is one.
func TestBacklog_probes_a_silent_node_once(t *testing.T) {
	const most, all, silence = 4, 100, 9
	backlog := BacklogOf[int](NewTopology(false, 1).common, t, 0, most)
	var workers sync.WaitGroup
	var asked, underWay, done, together atomic.Int32
	var add func(int)
	do := func(i int) bool {
		now := underWay.Add(1)
		defer underWay.Add(-1)
		if n := asked.Add(1); n <= silence {
			require.True(t, n <= most || now == 1, "attempt %d is one of %d", n, now)
			add(i)
			return false
		}
		together.Store(max(together.Load(), now))
		done.Add(1)
		time.Sleep(time.Millisecond) // the others begin meanwhile
		return true
	}
	add = func(i int) {
		if backlog.Add(i) {
			workers.Go(func() { backlog.Serve(t.Context(), workers.Go, atOnce, do) })
		}
	}
	for i := range all {
		add(i)
	}
	workers.Wait()
	require.EqualValues(t, all, done.Load())
	require.EqualValues(t, most, together.Load())
	require.True(t, backlog.Add(all), "it has been left")
}

// A backlog whose work arrives piece by piece has as many goroutines as one that was full when it
// began.
func TestBacklog_gets_more_goroutines_when_work_arrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 4
		backlog := BacklogOf[int](NewTopology(false, 1).common, t, 0, most)
		var workers sync.WaitGroup
		var underWay atomic.Int32
		for i := range most + 1 {
			if backlog.Add(i) {
				workers.Go(func() {
					backlog.Serve(t.Context(), workers.Go, atOnce, func(int) bool {
						underWay.Add(1)
						time.Sleep(time.Second) // in the bubble: longer than all the work arrives
						return true
					})
				})
			}
			synctest.Wait()
			require.EqualValues(t, min(i+1, most), underWay.Load())
		}
		workers.Wait()
	})
}

func TestBacklog_of_a_silent_node_is_bounded(t *testing.T) {
	backlog := BacklogOf[int](NewTopology(false, 1).common, t, 0, 1)
	odd := func(i int) bool { return i%2 == 1 }
	for i := range 4 {
		backlog.Add(i)
	}
	_, found := backlog.Shorten(3, odd)
	require.False(t, found, "the node is not silent")
	backlog.unanswered()
	out, found := backlog.Shorten(3, odd)
	require.True(t, found)
	require.Equal(t, 1, out)
	_, found = backlog.Shorten(3, odd)
	require.False(t, found)
	require.Equal(t, []int{0, 2, 3}, backlog.TakeAll())
}

// What is kept for a node is dropped with it.
func TestBacklog_is_forgotten_with_its_node(t *testing.T) {
	topology := NewTopology(true, 1)
	backlog := BacklogOf[int](topology.node("gone:1"), t, 0, 1)
	require.Same(t, backlog, BacklogOf[int](topology.node("gone:1"), t, 0, 1))
	topology.forget(map[string]rueidis.Client{}, &slotOwners{nodes: []*Node{topology.common}})
	require.NotSame(t, backlog, BacklogOf[int](topology.node("gone:1"), t, 0, 1))
}
