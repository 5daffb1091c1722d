package undo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/transport/nodes"
)

var start = lease.Stamp{Mono: time.Hour, Wall: 1000 * time.Hour}

// startPlus returns a stamp that is d after start on both clocks.
func startPlus(d time.Duration) lease.Stamp { return start.Before(-d) }

// TestDoubt_events checks what each event makes possible, on its own and a minute later.
func TestDoubt_events(t *testing.T) {
	type answers struct{ late, last, acquired, held bool }
	sent, span := start, 30*time.Second
	for event, each := range map[string]struct {
		happens     func(*Doubt)
		now, minute answers
	}{
		"nothing":                        {func(*Doubt) {}, answers{}, answers{}},
		"an acquisition is not answered": {func(d *Doubt) { d.AcquisitionInDoubt(sent, nodes.NoGeneration) }, answers{late: true, last: true, acquired: true, held: true}, answers{acquired: true, held: true}},
		"a grant is not wanted":          {func(d *Doubt) { d.Unwanted = true }, answers{held: true}, answers{held: true}},
		"a renewal is sent":              {func(d *Doubt) { d.Renewal = true }, answers{last: true}, answers{last: true}},
		"an extension is not answered":   {func(d *Doubt) { d.ExtensionInDoubt(time.Hour) }, answers{last: true}, answers{last: true}},
		"a release is not answered":      {func(d *Doubt) { d.Release = true }, answers{last: true}, answers{last: true}},
		"the last release begins":        {func(d *Doubt) { d.ValidAtRelease = true }, answers{}, answers{}},
	} {
		var d Doubt
		each.happens(&d)
		asked := func(now lease.Stamp) answers {
			return answers{d.MayComeLate(now, span), d.MayLast(now, span), d.Acquisition(), d.MayBeHeld()}
		}
		require.Equal(t, each.now, asked(sent), event)
		require.Equal(t, each.minute, asked(startPlus(time.Minute)), "%s, a minute ago", event)
	}
}

// One answer settles several acquisitions in doubt only if no connection broke between them. The
// last acquisition decides how long a late one may still arrive.
func TestDoubt_of_several_acquisitions(t *testing.T) {
	first, second := nodes.Generation{Here: 1, Anywhere: 1}, nodes.Generation{Here: 1, Anywhere: 2}
	var d Doubt
	d.AcquisitionInDoubt(start, first)
	d.AcquisitionInDoubt(startPlus(20*time.Second), first)
	require.Equal(t, first, d.SentIn())
	require.True(t, d.MayComeLate(startPlus(40*time.Second), 30*time.Second))
	d.AcquisitionInDoubt(startPlus(20*time.Second), second)
	require.Equal(t, nodes.NoGeneration, d.SentIn())
	d.AcquisitionInDoubt(startPlus(20*time.Second), second)
	require.Equal(t, nodes.NoGeneration, d.SentIn(), "the first is not proved by an answer in the second")
}

func TestDoubt_of_extensions_lasts_as_long_as_the_longest(t *testing.T) {
	var d Doubt
	require.Equal(t, time.Minute, d.Span(time.Minute))
	d.ExtensionInDoubt(time.Hour)
	d.ExtensionInDoubt(time.Second)
	require.Equal(t, time.Hour, d.Span(time.Minute))
}

// A missing owner is a loss, unless its own release may have been executed and the lease was
// certain when that release began.
func TestDoubt_explains_what_a_release_finds(t *testing.T) {
	for _, each := range []struct {
		d                   Doubt
		repeated, explained bool
	}{
		{Doubt{}, false, false},
		{Doubt{}, true, false},
		{Doubt{ValidAtRelease: true}, false, false},
		{Doubt{ValidAtRelease: true}, true, true},
		{Doubt{ValidAtRelease: true, Release: true}, false, true},
		{Doubt{Release: true}, true, false},
		{Doubt{ValidAtRelease: true, Release: true, Stores: true}, true, false},
	} {
		require.Equal(t, each.explained, each.d.ExplainsLoss(each.repeated), "%+v", each)
	}
}
