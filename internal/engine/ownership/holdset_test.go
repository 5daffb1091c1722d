package ownership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/base/request"
)

var leaseStart = lease.Stamp{Mono: time.Hour, Wall: 1000 * time.Hour}

// later returns a stamp that is d after leaseStart on both clocks.
func later(d time.Duration) lease.Stamp { return leaseStart.Before(-d) }

func TestHolds_are_counted_until_they_are_given_up(t *testing.T) {
	var s holdSet
	s.begin(&request.Request{Renew: true})
	inner, fixed := &Hold{renew: true}, &Hold{}
	s.add(inner)
	s.add(fixed)
	require.Equal(t, 3, s.Count)
	require.EqualValues(t, 2, s.renewing)

	require.False(t, s.uncount(&s.first), "in any order")
	require.EqualValues(t, 1, s.renewing)
	require.False(t, s.uncount(inner))
	require.Zero(t, s.renewing, "nothing that is left wants renewal")
	require.Len(t, s.entered, 2, "the server has not taken it back yet")
	s.remove(inner, nil)
	require.Equal(t, []*Hold{fixed}, s.entered)
	require.True(t, inner.Released())
	require.True(t, s.uncount(fixed), "the last")
	require.Zero(t, s.Count)
}

func TestHolds_renewal_stops_once(t *testing.T) {
	var s holdSet
	s.begin(&request.Request{Renew: true})
	inner := &Hold{renew: true}
	s.add(inner)
	s.stopRenewal(inner)
	s.stopRenewal(inner)
	require.EqualValues(t, 1, s.renewing)
	s.uncount(inner)
	require.EqualValues(t, 1, s.renewing)
}

func TestHolds_end_together(t *testing.T) {
	var s holdSet
	s.begin(&request.Request{Renew: true})
	inner, leaver, gone := &Hold{renew: true}, &Hold{renew: true}, &Hold{}
	for _, h := range []*Hold{inner, leaver, gone} {
		s.add(h)
	}
	s.uncount(gone)
	s.remove(gone, nil)
	s.uncount(leaver)
	ended := 0
	for _, h := range []*Hold{&s.first, inner, leaver} {
		h.OnEnd(func(error) { ended++ })
	}
	s.clear(fault.ErrLost).End(fault.ErrLost)
	require.Equal(t, 3, ended)
	for _, h := range []*Hold{&s.first, inner, leaver} {
		require.Equal(t, fault.ErrLost, h.Cause(), "also one whose release is not answered")
	}
	require.NoError(t, gone.Cause(), "what was released is not lost")
	require.Zero(t, s.Count)
	require.Zero(t, s.renewing)
}

func TestHolds_past_their_own_limits(t *testing.T) {
	var s holdSet
	s.begin(&request.Request{Renew: true})
	short := &Hold{limit: lease.NewBound(time.Second, leaseStart)}
	long := &Hold{limit: lease.NewBound(time.Minute, leaseStart)}
	s.add(short)
	s.add(long)
	s.add(&Hold{})
	require.Empty(t, s.pastLimit(leaseStart))
	require.Equal(t, []*Hold{short}, s.pastLimit(later(time.Second)))
	require.Equal(t, []*Hold{short, long}, s.pastLimit(later(time.Hour)))
}
