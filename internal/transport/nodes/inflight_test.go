package nodes

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/transport/outcome"
)

// takeSlot takes a free slot, or one for a probe.
func takeSlot(t *testing.T, f *InFlight) Slot {
	t.Helper()
	slot, err := f.Reserve(context.Background(), time.Now().Add(time.Minute))
	require.NoError(t, err)
	return slot
}

// full checks that there is no slot.
func full(t *testing.T, f *InFlight, why string) {
	t.Helper()
	_, err := f.Reserve(context.Background(), time.Now().Add(time.Millisecond))
	require.ErrorIs(t, err, outcome.ErrTooManyInFlight, why)
}

func TestInFlight_slots_can_be_waited_for_with_a_context(t *testing.T) {
	f := newInFlight(1)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	takeSlot(t, f)
	start := time.Now()
	_, err := f.Reserve(ctx, start.Add(time.Minute))
	require.ErrorIs(t, err, outcome.ErrTooManyInFlight)
	full(t, f, "until a time")
	require.Less(t, time.Since(start), time.Minute)
}

func TestInFlight_slots_of_callers_that_left_come_back_after_a_time(t *testing.T) {
	f := newInFlight(2)
	takeSlot(t, f)
	takeSlot(t, f)
	f.Abandon()
	f.Abandon()
	f.probing = true
	f.abandoned[0].at = time.Now().Add(-2 * abandonedFor)
	f.expire()
	require.False(t, takeSlot(t, f).Probe)
	require.NotNil(t, f.expiry, "the other one comes back too")
}

func TestInFlight_slots_of_callers_that_left_come_back_with_a_later_answer(t *testing.T) {
	f := newInFlight(2)
	takeSlot(t, f)
	f.Abandon()
	f.Finish(takeSlot(t, f))
	require.Empty(t, f.slots, "answers come in order")
	require.False(t, f.anyAbandoned.Load())
}

func TestInFlight_slots_are_freed_once_each(t *testing.T) {
	f := newInFlight(4)
	first, second, third := takeSlot(t, f), takeSlot(t, f), takeSlot(t, f)
	one, two := f.Abandon(), f.Abandon()
	f.AnsweredLate(second, two)
	require.Len(t, f.slots, 2)
	f.AnsweredLate(second, two)
	require.Len(t, f.slots, 2, "the same answer again")
	f.Finish(takeSlot(t, f))
	require.Len(t, f.slots, 1, "a later answer")
	f.AnsweredLate(first, one)
	require.Len(t, f.slots, 1, "its own answer after a later one")
	f.Finish(third)
	require.Empty(t, f.slots)
}

func TestInFlight_an_earlier_answer_frees_nothing(t *testing.T) {
	f := newInFlight(2)
	early := takeSlot(t, f)
	takeSlot(t, f)
	f.Abandon()
	f.Finish(early)
	require.Len(t, f.slots, 1)
}

func TestInFlight_a_command_that_was_not_sent_frees_its_own_slot(t *testing.T) {
	f := newInFlight(2)
	takeSlot(t, f)
	f.Abandon()
	withheld := takeSlot(t, f)
	f.AnsweredLate(withheld.Unheard(), f.Abandon())
	require.Len(t, f.slots, 1)
}

func TestInFlight_lets_one_probe_pass_when_all_callers_left(t *testing.T) {
	f := newInFlight(2)
	gone, _ := takeSlot(t, f), takeSlot(t, f)
	one := f.Abandon()
	full(t, f, "a caller is there to hear an answer")
	f.Abandon()
	probe := takeSlot(t, f)
	require.True(t, probe.Probe)
	last := f.Abandon()
	full(t, f, "one at a time")
	f.AnsweredLate(gone, one)
	require.Len(t, f.slots, 2, "its slot has become that of the probe")
	f.AnsweredLate(probe, last)
	require.Empty(t, f.slots)
}

func TestInFlight_a_probe_without_an_answer_is_followed_by_another(t *testing.T) {
	f := newInFlight(1)
	takeSlot(t, f)
	f.Abandon()
	probe := takeSlot(t, f)
	require.True(t, probe.Probe)
	f.Abandon()
	full(t, f, "one at a time")
	f.over(Slot{Probe: true}, func(abandonedSlot) bool { return false })
	require.True(t, takeSlot(t, f).Probe)
}
