package line

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var rw = Key{Key: "rw"}

// woken reports whether the front of a line was woken.
func woken(q *Line) bool {
	defer q.drain()
	return len(q.signals) > 0
}

// tries reports whether a waiter was woken in line.
func tries(w *Waiter) bool {
	select {
	case <-w.wake:
		return true
	default:
		return false
	}
}

// What wakes a key with two lines wakes both fronts, and those in the shared line. A message does
// not wake a front that awaits a grant.
func TestSides_are_woken_together(t *testing.T) {
	all := NewTable()
	shared, _, _ := all.enter(rw, Shared, nil, nil)
	_, second, _ := all.enter(rw, Shared, nil, nil)
	exclusive, _, _ := all.enter(rw, Exclusive, nil, nil)
	whole := all.Known(rw)
	require.True(t, exclusive.ExpectGrant())
	whole.WakeFronts()
	require.True(t, woken(shared))
	require.True(t, tries(second))
	require.False(t, woken(exclusive))
	whole.Signal()
	require.True(t, woken(shared))
	require.True(t, tries(second))
	require.True(t, woken(exclusive))
	exclusive.acquired()
	require.False(t, tries(second))
	shared.acquired()
	require.True(t, tries(second))
	exclusive.TakeTurns()
	require.True(t, whole.strangers.TakesTurns)
	exclusive.StrangerHolds(true)
	require.False(t, exclusive.ExpectGrant(), "a stranger may leave last, and grants nothing")
	whole.WakeFronts()
	require.True(t, woken(exclusive))
}

// A waiter that made an attempt before it entered a shared line tries again if it has missed a
// hint.
func TestSides_a_missed_hint(t *testing.T) {
	all := NewTable()
	all.enter(rw, Shared, nil, nil)
	before := &Earlier{Hints: all.Hints(rw)}
	_, w, _ := all.enter(rw, Shared, nil, before)
	require.False(t, tries(w))
	all.Known(rw).Signal()
	_, late, _ := all.enter(rw, Shared, nil, before)
	require.True(t, tries(late))
}

// Readers are kept out by a writer, and writers by everybody.
func TestSides_who_is_kept_out(t *testing.T) {
	all := NewTable()
	whole := all.Use(rw)
	reads, writes := newFakeHold(all, "rw"), newFakeHold(all, "rw")
	writes.side = Exclusive
	reads.links.HoldBegins()
	require.False(t, whole.In(Shared).isHeld())
	require.True(t, whole.In(Exclusive).isHeld())
	writes.links.HoldBegins()
	require.True(t, whole.In(Shared).isHeld())
	reads.links.HoldEnds(false, nil)
	writes.links.HoldEnds(false, nil)
	require.False(t, whole.In(Exclusive).isHeld())
}

// greedy is a call that wants whatever could be passed.
type greedy struct{ Recipient }

func (greedy) Wants(Held) bool { return true }

// A writer is not passed on while readers wait.
func TestSides_readers_go_first(t *testing.T) {
	all := NewTable()
	h := newFakeHold(all, "rw")
	h.side = Exclusive
	all.Use(rw)
	h.links.HoldBegins()
	_, next, _ := all.enter(rw, Exclusive, greedy{}, nil)
	shared, _, _ := all.enter(rw, Shared, nil, nil)
	require.Equal(t, greedy{}, h.links.FirstInLine())
	require.Nil(t, h.links.TakeFirst())
	shared.leaveFront()
	require.Same(t, next, h.links.TakeFirst())
	require.Nil(t, h.links.FirstInLine())
}
