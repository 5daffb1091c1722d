package transport

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// While a caller has left an unanswered group, no command joins a group: the server may be silent.
// Afterwards they do, whenever the callers left.
func TestGrouping_while_a_caller_has_left(t *testing.T) {
	var script GroupScript
	command, on := script.Add(NewScript("return 1")), Terms{end: time.Now()}
	var g grouping
	join := func() (*group, *groupMember) {
		m := &groupMember{call: Call{Cmd: command}}
		joined, _ := g.join(m, on)
		return joined, m
	}
	first, early := join()
	require.NotNil(t, first)
	_, late := join()
	require.Len(t, g.close(first), 2)

	require.Equal(t, leftUnderWay, g.leave(first, early))
	refused, _ := join()
	require.Nil(t, refused)
	settled := g.whenSettled()
	select {
	case <-settled:
		t.Fatal("it may yet be executed")
	default:
	}
	g.answered(first)
	<-settled
	require.Nil(t, g.whenSettled())
	require.Equal(t, leftAnswered, g.leave(first, late))
	second, _ := join()
	require.NotNil(t, second)
}

// A caller that leaves before its group is closed takes its command with it.
func TestGrouping_leave_before_it_is_sent(t *testing.T) {
	var script GroupScript
	command, on := script.Add(NewScript("return 1")), Terms{end: time.Now()}
	var g grouping
	m := &groupMember{call: Call{Cmd: command}}
	joined, isFirst := g.join(m, on)
	require.True(t, isFirst)
	require.Equal(t, leftUnsent, g.leave(joined, m))
	require.Empty(t, g.close(joined))
}

// Commands with another deadline or another script are not grouped, and a group has a maximum size.
func TestGrouping_who_may_join(t *testing.T) {
	var script, other GroupScript
	command, on := script.Add(NewScript("return 1")), Terms{end: time.Now()}
	var g grouping
	first, _ := g.join(&groupMember{call: Call{Cmd: command}}, on)
	late, _ := g.join(&groupMember{call: Call{Cmd: command}}, Terms{end: on.end.Add(2 * groupSpread)})
	require.Nil(t, late)
	foreign, _ := g.join(&groupMember{call: Call{Cmd: other.Add(NewScript("return 2"))}}, on)
	require.Nil(t, foreign)
	for range groupSize - 1 {
		joined, isFirst := g.join(&groupMember{call: Call{Cmd: command}}, on)
		require.Same(t, first, joined)
		require.False(t, isFirst)
	}
	next, isFirst := g.join(&groupMember{call: Call{Cmd: command}}, on)
	require.NotSame(t, first, next)
	require.True(t, isFirst)
}
