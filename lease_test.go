package latchkey

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/transport"
)

var leaseStart = transport.Stamp{Mono: time.Hour, Wall: 1000 * time.Hour}

// later returns a stamp that is d after leaseStart on both clocks.
func later(d time.Duration) transport.Stamp { return leaseStart.Before(-d) }

func TestLease_ends_before_that_of_the_server(t *testing.T) {
	l := newLeaseTerm(leaseStart, time.Minute, time.Minute, 0)
	require.Equal(t, time.Minute-driftMargin(time.Minute), l.valid(leaseStart), "counted from before it was sent")
	require.Zero(t, l.valid(later(time.Minute-driftMargin(time.Minute))))
	require.Zero(t, l.left(later(time.Minute)))
	asleep := transport.Stamp{Mono: leaseStart.Mono, Wall: leaseStart.Wall + time.Minute}
	require.Negative(t, l.valid(asleep), "the monotonic clock stands still while the machine sleeps")
	setBack := transport.Stamp{Mono: leaseStart.Mono + time.Minute, Wall: leaseStart.Wall - time.Hour}
	require.Negative(t, l.valid(setBack), "and the wall clock may be set")
}

func TestLease_extend_never_shortens(t *testing.T) {
	l := newLeaseTerm(leaseStart, time.Minute, time.Minute, 0)
	l.extend(later(10*time.Second), 20*time.Second)
	require.Equal(t, 50*time.Second, l.left(later(10*time.Second)))
	l.extend(later(10*time.Second), 55*time.Second)
	require.Equal(t, 55*time.Second, l.left(later(10*time.Second)))
	l.extend(later(-time.Second), time.Minute)
	require.Equal(t, 55*time.Second, l.left(later(10*time.Second)), "an answer that comes late")
}

func TestLease_shorten_never_extends(t *testing.T) {
	l := newLeaseTerm(leaseStart, time.Minute, time.Minute, 0)
	l.shorten(later(time.Second), time.Hour)
	require.Equal(t, time.Minute, l.left(leaseStart))
	l.shorten(later(time.Second), time.Second)
	require.Equal(t, 2*time.Second, l.left(leaseStart))
	l.set(leaseStart, time.Hour)
	require.Equal(t, time.Hour, l.left(leaseStart))
}

func TestLease_is_renewed_after_a_third(t *testing.T) {
	l := newLeaseTerm(leaseStart, time.Minute, time.Minute, 0)
	for range 100 {
		due := l.untilRenewal(leaseStart)
		require.LessOrEqual(t, due, 20*time.Second)
		require.Greater(t, due, 18*time.Second, "clients spread, a little")
	}
	l.extend(later(15*time.Second), time.Second)
	require.LessOrEqual(t, l.untilRenewal(later(15*time.Second)), 5*time.Second, "a short extension is no renewal")
	l.extend(later(15*time.Second), time.Minute)
	require.Greater(t, l.untilRenewal(later(15*time.Second)), 18*time.Second)
	require.Equal(t, time.Minute, l.next(later(time.Hour)))
}

func TestLease_never_passes_the_limit(t *testing.T) {
	const limit = 90 * time.Second
	l := newLeaseTerm(leaseStart, time.Minute, time.Minute, limit)
	require.False(t, l.atLimit())
	require.Equal(t, time.Minute, l.next(later(20*time.Second)))
	now := later(40 * time.Second)
	require.Equal(t, 50*time.Second, l.next(now), "what is left until the limit")
	l.extend(now, l.next(now))
	require.True(t, l.atLimit(), "another renewal would add nothing")
	require.Equal(t, 50*time.Second-driftMargin(limit), l.valid(now))
	l.extend(now, time.Hour)
	require.Equal(t, 50*time.Second-driftMargin(limit), l.valid(now), "whatever the server has granted")
	require.Zero(t, l.releaseLease(), "a partial release must not raise the time of the key beyond it")
}

func TestLimit_of_nothing_allows_everything(t *testing.T) {
	var none *timeBound
	require.Equal(t, async.NoDeadline, none.left(leaseStart))
	require.Equal(t, async.NoDeadline, none.valid(later(MaxLease)))
}

// A granted lease is short. A short hold needs no renewal, however long its owner has waited. If a renewal fails,
// there is time for more.
func TestLease_granted_is_not_renewed_at_once(t *testing.T) {
	const granted = 5 * time.Second
	r := &request{lease: time.Minute, renew: true, renewLease: time.Minute}
	for waited := time.Duration(0); waited <= granted/2; waited += granted / 20 {
		l := newGrantedTerm(leaseStart, later(waited), granted, r)
		for range 20 {
			due := l.untilRenewal(later(waited))
			require.Greater(t, due, granted/4-granted/40)
			require.LessOrEqual(t, due, granted/3)
			require.Greater(t, l.valid(later(waited+due)), granted/4-granted/40)
			if waited == 0 {
				oneMore := l.patience() + transport.Jitter(l.retryPause())
				require.Greater(t, l.valid(later(due+oneMore)), oneMore, "two more fit in")
			}
		}
	}
}
