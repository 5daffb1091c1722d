package transport

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// takeSlot takes a free slot, or one for a probe.
func takeSlot(t *testing.T, f *inflight) inflightSlot {
	t.Helper()
	slot, err := f.reserve(context.Background(), time.Now().Add(time.Minute))
	require.NoError(t, err)
	return slot
}

// full checks that there is no slot.
func full(t *testing.T, f *inflight, why string) {
	t.Helper()
	_, err := f.reserve(context.Background(), time.Now().Add(time.Millisecond))
	require.ErrorIs(t, err, outcome.ErrTooManyInFlight, why)
}

func TestInflight_slots_can_be_waited_for_with_a_context(t *testing.T) {
	f := newInflight(1)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	takeSlot(t, f)
	start := time.Now()
	_, err := f.reserve(ctx, start.Add(time.Minute))
	require.ErrorIs(t, err, outcome.ErrTooManyInFlight)
	full(t, f, "until a time")
	require.Less(t, time.Since(start), time.Minute)
}

func TestInflight_slots_of_callers_that_left_come_back_after_a_time(t *testing.T) {
	f := newInflight(2)
	takeSlot(t, f)
	takeSlot(t, f)
	f.abandon()
	f.abandon()
	f.probing = true
	f.abandoned[0].at = time.Now().Add(-2 * abandonedFor)
	f.expire()
	require.False(t, takeSlot(t, f).probe)
	require.NotNil(t, f.expiry, "the other one comes back too")
}

func TestInflight_slots_of_callers_that_left_come_back_with_a_later_answer(t *testing.T) {
	f := newInflight(2)
	takeSlot(t, f)
	f.abandon()
	f.finish(takeSlot(t, f))
	require.Empty(t, f.slots, "answers come in order")
	require.False(t, f.anyAbandoned.Load())
}

func TestInflight_slots_are_freed_once_each(t *testing.T) {
	f := newInflight(4)
	first, second, third := takeSlot(t, f), takeSlot(t, f), takeSlot(t, f)
	one, two := f.abandon(), f.abandon()
	f.answeredLate(second, two)
	require.Len(t, f.slots, 2)
	f.answeredLate(second, two)
	require.Len(t, f.slots, 2, "the same answer again")
	f.finish(takeSlot(t, f))
	require.Len(t, f.slots, 1, "a later answer")
	f.answeredLate(first, one)
	require.Len(t, f.slots, 1, "its own answer after a later one")
	f.finish(third)
	require.Empty(t, f.slots)
}

func TestInflight_an_earlier_answer_frees_nothing(t *testing.T) {
	f := newInflight(2)
	early := takeSlot(t, f)
	takeSlot(t, f)
	f.abandon()
	f.finish(early)
	require.Len(t, f.slots, 1)
}

func TestInflight_a_command_that_was_not_sent_frees_its_own_slot(t *testing.T) {
	f := newInflight(2)
	takeSlot(t, f)
	f.abandon()
	withheld := takeSlot(t, f)
	f.answeredLate(withheld.unheard(), f.abandon())
	require.Len(t, f.slots, 1)
}

func TestInflight_lets_one_probe_pass_when_all_callers_left(t *testing.T) {
	f := newInflight(2)
	gone, _ := takeSlot(t, f), takeSlot(t, f)
	one := f.abandon()
	full(t, f, "a caller is there to hear an answer")
	f.abandon()
	probe := takeSlot(t, f)
	require.True(t, probe.probe)
	last := f.abandon()
	full(t, f, "one at a time")
	f.answeredLate(gone, one)
	require.Len(t, f.slots, 2, "its slot has become that of the probe")
	f.answeredLate(probe, last)
	require.Empty(t, f.slots)
}

func TestInflight_a_probe_without_an_answer_is_followed_by_another(t *testing.T) {
	f := newInflight(1)
	takeSlot(t, f)
	f.abandon()
	probe := takeSlot(t, f)
	require.True(t, probe.probe)
	f.abandon()
	full(t, f, "one at a time")
	f.over(inflightSlot{probe: true}, func(abandonedSlot) bool { return false })
	require.True(t, takeSlot(t, f).probe)
}
