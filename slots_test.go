package latchkey

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// takeSlot takes a slot that is there, or to be had as a probe.
func takeSlot(t *testing.T, s *slots) (probe bool) {
	t.Helper()
	probe, err := s.take(context.Background(), time.Millisecond)
	require.NoError(t, err)
	return probe
}

func TestSlots_can_be_waited_for_with_a_context(t *testing.T) {
	s := newSlots(1)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	require.False(t, takeSlot(t, s))
	start := time.Now()
	_, err := s.take(ctx, time.Minute)
	require.ErrorIs(t, err, errSlots)
	_, err = s.take(context.Background(), time.Millisecond)
	require.ErrorIs(t, err, errSlots)
	require.Less(t, time.Since(start), 5*time.Second)
}

func TestSlots_of_callers_that_left_come_back_after_a_time(t *testing.T) {
	s := newSlots(1)
	takeSlot(t, s)
	s.abandon()
	s.abandoned[0].at = time.Now().Add(-2 * abandonedFor)
	s.probing = true
	require.False(t, takeSlot(t, s))
}

func TestSlots_of_callers_that_left_come_back_with_a_later_answer(t *testing.T) {
	s := newSlots(2)
	takeSlot(t, s)
	s.abandon()
	takeSlot(t, s)
	s.give(time.Now())
	require.Empty(t, s.taken, "answers come in order")
}

func TestSlots_are_freed_once_for_each_departure(t *testing.T) {
	s := newSlots(3)
	start := time.Now()
	takeSlot(t, s)
	takeSlot(t, s)
	takeSlot(t, s)
	first, second := s.abandon(), s.abandon()
	s.settle(second, start)
	require.Len(t, s.taken, 2)
	s.settle(second, start)
	require.Len(t, s.taken, 2, "the same answer again")
	s.reclaim(time.Now())
	require.Len(t, s.taken, 1, "a later answer")
	s.settle(first, start)
	require.Len(t, s.taken, 1, "its own answer after a later one")
	s.give(start)
	require.Empty(t, s.taken)
}

func TestSlots_let_one_probe_pass_when_all_callers_left(t *testing.T) {
	s := newSlots(2)
	start := time.Now()
	takeSlot(t, s)
	takeSlot(t, s)
	gone := s.abandon()
	_, err := s.take(context.Background(), time.Millisecond)
	require.ErrorIs(t, err, errSlots, "a caller is there to hear an answer")
	s.abandon()
	require.True(t, takeSlot(t, s))
	probe := s.abandon()
	_, err = s.take(context.Background(), time.Millisecond)
	require.ErrorIs(t, err, errSlots, "one at a time")
	s.settle(gone, start)
	require.Len(t, s.taken, 2, "its slot has become that of the probe")
	s.settle(probe, time.Now())
	s.probed()
	require.Empty(t, s.taken)
}
