package queue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/internal/base/lease"
	"github.com/latchkey-go/latchkey/internal/engine/inbox"
	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
)

// calls counts what a waiter is told.
type calls struct{ signals, reconnected int }

func (c *calls) Signal()      { c.signals++ }
func (c *calls) Reconnected() { c.reconnected++ }

var (
	made    = lease.Stamp{Mono: time.Hour, Wall: 1000 * time.Hour}
	inQueue = made.Before(-time.Second)
)

// written returns an entry with a text, and its waiter.
func written() (*Entry, *calls) {
	w := &calls{}
	e := New(inbox.New(inbox.Config{Client: "c", Subscribe: func(*pubsub.Subscription) {}}), "key", "owner", w, made)
	e.Write(time.Minute, time.Second, func() string { return "text" })
	return e, w
}

// An owner that has never waited has nothing in a queue.
func TestEntry_of_an_owner_that_has_never_waited(t *testing.T) {
	var e *Entry
	require.Zero(t, e.TakePlace(true, "5"))
	e.SeenInQueue("1", made)
	g, _, known := e.TakeGrant()
	require.Nil(t, g)
	require.False(t, known || e.MayBeQueued() || e.MayWait())
	require.Empty(t, e.Left(true))
	granted, waits := e.GiveUp()
	require.False(t, granted || waits)
	e.HoldBegins()
}

// An attempt names the entry if it is to be queued, and the old one if it may be queued already.
func TestEntry_says_its_place(t *testing.T) {
	e, _ := written()
	require.Zero(t, e.TakePlace(false, ""), "nothing would be heard of the place")
	require.Empty(t, e.Left(false))
	require.Equal(t, "text", e.Left(true), "an attempt without an answer may have been queued")
	require.Equal(t, Place{Entry: "text", Poll: "5"}, e.TakePlace(false, "5"))
	require.Equal(t, Place{Entry: "text", OldEntry: "text", Poll: "0"}, e.TakePlace(true, ""), "it polls no more")
	require.Equal(t, Place{OldEntry: "text"}, e.TakePlace(false, ""))
	require.True(t, e.MayBeQueued() && e.MayWait())
	require.Equal(t, "text", e.Left(false))
	_, waits := e.GiveUp()
	require.True(t, waits && e.MayWait(), "until the server has removed it")
	e.HoldBegins()
	require.False(t, e.MayWait())
	require.Equal(t, "text", e.Left(false), "the queue may have a poll time")
	e.Write(time.Hour, time.Hour, func() string { return "another text" })
	text, wanted := e.Wanted()
	require.Equal(t, "text", text)
	require.Equal(t, time.Minute, wanted)
}

// A grant is taken once. Its lease counts from when the entry was seen in the queue, if the grant
// is of that entry.
func TestEntry_takes_a_grant(t *testing.T) {
	e, w := written()
	e.SeenInQueue("17", inQueue)
	require.True(t, e.Granted(3, "17"))
	require.Equal(t, 1, w.signals)
	g, from, known := e.TakeGrant()
	require.Equal(t, &Grant{3, time.Second, "17"}, g)
	require.Equal(t, inQueue, from)
	require.False(t, known)
	g, _, _ = e.TakeGrant()
	require.Nil(t, g)
	require.True(t, e.Granted(4, "18"))
	_, from, _ = e.TakeGrant()
	require.Equal(t, made, from, "of an entry that was put into the queue again")
}

// Either GiveUp reports a grant that has come, or the grant is not wanted.
func TestEntry_closes(t *testing.T) {
	e, _ := written()
	require.True(t, e.Granted(3, ""))
	granted, _ := e.GiveUp()
	require.True(t, granted)

	late, w := written()
	late.Expect()
	require.True(t, late.Expected())
	granted, _ = late.GiveUp()
	require.False(t, granted || late.Expected())
	require.False(t, late.Granted(3, ""))
	require.Zero(t, w.signals)
	g, _, _ := late.TakeGrant()
	require.Nil(t, g)
}

// The owner that goes on with an entry wants a lease of its own. The server may have given a longer
// one.
func TestEntry_wants_another_lease(t *testing.T) {
	for what, each := range map[string]struct {
		happens func(e *Entry)
		inDoubt bool
		lease   time.Duration
		given   time.Duration
		ok      bool
	}{
		"a shorter one than that of a grant":     {lease: time.Millisecond, given: time.Second, ok: true},
		"a longer one":                           {lease: time.Hour, given: time.Second, ok: true},
		"less than an attempt may have given it": {inDoubt: true, lease: time.Second, given: time.Minute},
		"more than an attempt may have given it": {inDoubt: true, lease: time.Hour, given: time.Minute, ok: true},
		"a grant has come": {
			happens: func(e *Entry) { e.Granted(3, "") }, inDoubt: true, lease: time.Second, given: time.Second, ok: true,
		},
	} {
		e, _ := written()
		if each.happens != nil {
			each.happens(e)
		}
		given, ok := e.Want(each.lease, each.inDoubt)
		require.Equal(t, each.given, given, what)
		require.Equal(t, each.ok, ok, what)
		_, wanted := e.Wanted()
		require.Equal(t, each.ok, wanted == each.lease, what)
	}
}

// After a message may have been lost, the waiter queries the server, also if it is told only then
// that its entry was put into the queue.
func TestEntry_that_must_query(t *testing.T) {
	e, w := written()
	e.ReleaseBegins()
	require.True(t, e.Expected() && e.MayBeQueued() && e.MayWait())
	e.Query()
	e.Reconnected()
	require.Equal(t, calls{1, 1}, *w)
	require.True(t, e.unsure)
	_, _, known := e.TakeGrant()
	require.False(t, known)
	alone := &calls{}
	e.WaitAlone(alone, time.Hour)
	e.Signal()
	require.Equal(t, 1, alone.signals)
	require.Equal(t, time.Hour, e.Lease)
}
