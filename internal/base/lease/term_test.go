package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/async"
)

var start = Stamp{Mono: time.Hour, Wall: 1000 * time.Hour}

// instant returns a stamp that is d after start on both clocks.
func instant(d time.Duration) Stamp { return start.Before(-d) }

func TestLease_ends_before_that_of_the_server(t *testing.T) {
	l := NewTerm(start, time.Minute, time.Minute, 0)
	require.Equal(t, time.Minute-Margin(time.Minute), l.Valid(start), "counted from before it was sent")
	require.Zero(t, l.Valid(instant(time.Minute-Margin(time.Minute))))
	require.Zero(t, l.left(instant(time.Minute)))
	asleep := Stamp{Mono: start.Mono, Wall: start.Wall + time.Minute}
	require.Negative(t, l.Valid(asleep), "the monotonic clock stands still while the machine sleeps")
	setBack := Stamp{Mono: start.Mono + time.Minute, Wall: start.Wall - time.Hour}
	require.Negative(t, l.Valid(setBack), "and the wall clock may be set")
}

func TestLease_extend_never_shortens(t *testing.T) {
	l := NewTerm(start, time.Minute, time.Minute, 0)
	l.Extend(instant(10*time.Second), 20*time.Second)
	require.Equal(t, 50*time.Second, l.left(instant(10*time.Second)))
	l.Extend(instant(10*time.Second), 55*time.Second)
	require.Equal(t, 55*time.Second, l.left(instant(10*time.Second)))
	l.Extend(instant(-time.Second), time.Minute)
	require.Equal(t, 55*time.Second, l.left(instant(10*time.Second)), "an answer that comes late")
}

func TestLease_shorten_never_extends(t *testing.T) {
	l := NewTerm(start, time.Minute, time.Minute, 0)
	l.Shorten(instant(time.Second), time.Hour)
	require.Equal(t, time.Minute, l.left(start))
	l.Shorten(instant(time.Second), time.Second)
	require.Equal(t, 2*time.Second, l.left(start))
	l.Set(start, time.Hour)
	require.Equal(t, time.Hour, l.left(start))
}

func TestLease_is_renewed_after_a_third(t *testing.T) {
	l := NewTerm(start, time.Minute, time.Minute, 0)
	for range 100 {
		due := l.UntilRenewal(start)
		require.LessOrEqual(t, due, 20*time.Second)
		require.Greater(t, due, 18*time.Second, "clients spread, a little")
	}
	l.Extend(instant(15*time.Second), time.Second)
	require.LessOrEqual(t, l.UntilRenewal(instant(15*time.Second)), 5*time.Second, "a short extension is no renewal")
	l.Extend(instant(15*time.Second), time.Minute)
	require.Greater(t, l.UntilRenewal(instant(15*time.Second)), 18*time.Second)
	require.Equal(t, time.Minute, l.Next(instant(time.Hour)))
}

func TestLease_never_passes_the_limit(t *testing.T) {
	const limit = 90 * time.Second
	l := NewTerm(start, time.Minute, time.Minute, limit)
	require.False(t, l.AtLimit())
	require.Equal(t, time.Minute, l.Next(instant(20*time.Second)))
	now := instant(40 * time.Second)
	require.Equal(t, 50*time.Second, l.Next(now), "what is left until the limit")
	l.Extend(now, l.Next(now))
	require.True(t, l.AtLimit(), "another renewal would add nothing")
	require.Equal(t, 50*time.Second-Margin(limit), l.Valid(now))
	l.Extend(now, time.Hour)
	require.Equal(t, 50*time.Second-Margin(limit), l.Valid(now), "whatever the server has granted")
	require.Zero(t, l.ReleaseLease(), "a partial release must not raise the time of the key beyond it")
}

func TestLimit_of_nothing_allows_everything(t *testing.T) {
	var none *Bound
	require.Equal(t, async.NoDeadline, none.Left(start))
	require.Equal(t, async.NoDeadline, none.Valid(instant(Longest)))
}

// A renewal leaves time for another, unless there is too little for both.
func TestLease_last_renewal_waits_for_what_is_left(t *testing.T) {
	full := NewTerm(start, time.Minute, time.Minute, 0)
	require.Equal(t, 10*time.Second, full.RenewalPatience(instant(20*time.Second)))
	require.Equal(t, full.Valid(instant(45*time.Second)), full.RenewalPatience(instant(45*time.Second)))
	require.Equal(t, 10*time.Second, full.RenewalPatience(instant(time.Minute)), "the lease is over")
	granted := NewGranted(start, instant(450*time.Millisecond), time.Second, time.Minute, time.Minute, true)
	require.Equal(t, 250*time.Millisecond, granted.RenewalPatience(instant(700*time.Millisecond)))
}

// A granted lease is short. A short hold needs no renewal, however long its owner has waited. If a
// renewal fails, there is time for more.
func TestLease_granted_is_not_renewed_at_once(t *testing.T) {
	const granted = 5 * time.Second
	for waited := time.Duration(0); waited <= granted/2; waited += granted / 20 {
		l := NewGranted(start, instant(waited), granted, time.Minute, time.Minute, true)
		for range 20 {
			due := l.UntilRenewal(instant(waited))
			require.Greater(t, due, granted/4-granted/40)
			require.LessOrEqual(t, due, granted/3)
			require.Greater(t, l.Valid(instant(waited+due)), granted/4-granted/40)
			if waited == 0 {
				oneMore := l.Patience() + l.RetryPause()
				require.Greater(t, l.Valid(instant(due+oneMore)), oneMore, "two more fit in")
			}
		}
	}
}
