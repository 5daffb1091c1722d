package latchkey

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/transport"
)

var leaseStart = lease.Stamp{Mono: time.Hour, Wall: 1000 * time.Hour}

// later returns a stamp that is d after leaseStart on both clocks.
func later(d time.Duration) lease.Stamp { return leaseStart.Before(-d) }

// TestDoubt_events checks what each event makes possible, on its own and a minute later.
func TestDoubt_events(t *testing.T) {
	type answers struct{ late, last, wait, held bool }
	sent, span := leaseStart, 30*time.Second
	for event, each := range map[string]struct {
		happens     func(*doubt)
		now, minute answers
	}{
		"nothing":                        {func(*doubt) {}, answers{}, answers{}},
		"an acquisition is not answered": {func(d *doubt) { d.acquisitionInDoubt(sent, transport.NoGeneration) }, answers{late: true, last: true, wait: true, held: true}, answers{wait: true, held: true}},
		"a grant is not wanted":          {func(d *doubt) { d.unwanted = true }, answers{held: true}, answers{held: true}},
		"it is queued":                   {func(d *doubt) { d.queued = true }, answers{wait: true}, answers{wait: true}},
		"a renewal is sent":              {func(d *doubt) { d.renewal = true }, answers{last: true}, answers{last: true}},
		"an extension is not answered":   {func(d *doubt) { d.extensionInDoubt(time.Hour) }, answers{last: true}, answers{last: true}},
		"a release is not answered":      {func(d *doubt) { d.release = true }, answers{last: true}, answers{last: true}},
		"the last release begins":        {func(d *doubt) { d.validAtRelease = true }, answers{}, answers{}},
	} {
		var d doubt
		each.happens(&d)
		asked := func(now lease.Stamp) answers {
			return answers{d.mayComeLate(now, span), d.mayLast(now, span), d.mayWait(), d.mayBeHeld()}
		}
		require.Equal(t, each.now, asked(sent), event)
		require.Equal(t, each.minute, asked(later(time.Minute)), "%s, a minute ago", event)
	}
}

// One answer settles several acquisitions in doubt only if no connection broke between them. The last acquisition
// decides how long a late one may still arrive.
func TestDoubt_of_several_acquisitions(t *testing.T) {
	first, second := transport.Generation{Here: 1, Anywhere: 1}, transport.Generation{Here: 1, Anywhere: 2}
	var d doubt
	d.acquisitionInDoubt(leaseStart, first)
	d.acquisitionInDoubt(later(20*time.Second), first)
	require.Equal(t, first, d.sentIn())
	require.True(t, d.mayComeLate(later(40*time.Second), 30*time.Second))
	d.acquisitionInDoubt(later(20*time.Second), second)
	require.Equal(t, transport.NoGeneration, d.sentIn())
	d.acquisitionInDoubt(later(20*time.Second), second)
	require.Equal(t, transport.NoGeneration, d.sentIn(), "the first is not proved by an answer in the second")
}

func TestDoubt_of_extensions_lasts_as_long_as_the_longest(t *testing.T) {
	var d doubt
	require.Equal(t, time.Minute, d.span(time.Minute))
	d.extensionInDoubt(time.Hour)
	d.extensionInDoubt(time.Second)
	require.Equal(t, time.Hour, d.span(time.Minute))
}

// A missing owner is a loss, unless its own release may have been executed and the lease was certain when that
// release began.
func TestDoubt_explains_what_a_release_finds(t *testing.T) {
	for _, each := range []struct {
		d                   doubt
		repeated, explained bool
	}{
		{doubt{}, false, false},
		{doubt{}, true, false},
		{doubt{validAtRelease: true}, false, false},
		{doubt{validAtRelease: true}, true, true},
		{doubt{validAtRelease: true, release: true}, false, true},
		{doubt{release: true}, true, false},
	} {
		require.Equal(t, each.explained, each.d.explainsLoss(each.repeated), "%+v", each)
	}
}
