package hold

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/lease"
)

var leaseStart = lease.Stamp{Mono: time.Hour, Wall: 1000 * time.Hour}

// later returns a stamp that is d after leaseStart on both clocks.
func later(d time.Duration) lease.Stamp { return leaseStart.Before(-d) }

// enter adds a re-entry.
func enter(s *Set, h *Item) {
	s.Reserve()
	s.Add(h)
}

func TestHolds_are_counted_until_they_are_given_up(t *testing.T) {
	first := &Item{Renew: true}
	s := NewSet(first)
	s.Begin()
	inner, fixed := &Item{Renew: true}, &Item{}
	enter(&s, inner)
	enter(&s, fixed)
	require.Equal(t, 3, s.Count)
	require.EqualValues(t, 2, s.renewing)

	require.False(t, s.Uncount(first), "in any order")
	require.EqualValues(t, 1, s.renewing)
	require.False(t, s.Uncount(inner))
	require.Zero(t, s.renewing, "nothing that is left wants renewal")
	require.Len(t, s.entered, 2, "the server has not taken it back yet")
	s.Remove(inner, nil)
	require.Equal(t, []*Item{fixed}, s.entered)
	require.True(t, inner.Released())
	s.Reserve()
	require.False(t, s.Uncount(fixed), "another one is requested")
	require.True(t, s.Unreserve(), "the last")
	require.Zero(t, s.Count)
}

func TestHolds_renewal_stops_once(t *testing.T) {
	first := &Item{Renew: true}
	s := NewSet(first)
	s.Begin()
	inner := &Item{Renew: true}
	enter(&s, inner)
	s.StopRenewal(inner)
	s.StopRenewal(inner)
	require.EqualValues(t, 1, s.renewing)
	s.Uncount(inner)
	require.EqualValues(t, 1, s.renewing)
}

func TestHolds_end_together(t *testing.T) {
	first := &Item{Renew: true}
	s := NewSet(first)
	s.Begin()
	inner, leaver, gone := &Item{Renew: true}, &Item{Renew: true}, &Item{}
	for _, h := range []*Item{inner, leaver, gone} {
		enter(&s, h)
	}
	s.Uncount(gone)
	s.Remove(gone, nil)
	s.Uncount(leaver)
	ended := 0
	for _, h := range []*Item{first, inner, leaver} {
		h.OnEnd(func(error) { ended++ })
	}
	s.Clear(fault.ErrLost).End(fault.ErrLost)
	require.Equal(t, 3, ended)
	for _, h := range []*Item{first, inner, leaver} {
		require.Equal(t, fault.ErrLost, h.Cause(), "also one whose release is not answered")
	}
	require.NoError(t, gone.Cause(), "what was released is not lost")
	require.Zero(t, s.Count)
	require.Zero(t, s.renewing)
}

func TestHolds_past_their_own_limits(t *testing.T) {
	first := &Item{Renew: true}
	s := NewSet(first)
	s.Begin()
	short := &Item{Limit: lease.NewBound(time.Second, leaseStart)}
	long := &Item{Limit: lease.NewBound(time.Minute, leaseStart)}
	enter(&s, short)
	enter(&s, long)
	enter(&s, &Item{})
	require.Empty(t, s.PastLimit(leaseStart))
	require.Equal(t, []*Item{short}, s.PastLimit(later(time.Second)))
	require.Equal(t, []*Item{short, long}, s.PastLimit(later(time.Hour)))
}
