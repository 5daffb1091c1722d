package tests

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// How a generation is broken, and who learns of it.

// requireBroken checks that a party learned that its generation was broken, and how.
func requireBroken(t testing.TB, err error, how string) {
	t.Helper()
	require.ErrorIs(t, err, latchkey.ErrBroken)
	assert.NotErrorIs(t, err, latchkey.ErrNotAcquired)
	assert.ErrorContains(t, err, how)
}

// A party that gives up breaks the generation for the others and gets an error of its own. The next
// generation works normally.
func TestBarrierGivenUp(t *testing.T) {
	server := rig.Shared()
	b := connect(t, server, onlyMessages).NewBarrier(rig.Name(t), 3)
	other := connect(t, server, onlyMessages).NewBarrier(b.Name(), 3)
	for what, each := range map[string]struct {
		giveUp func(t *testing.T, wait time.Duration) error
		how    string
	}{
		"time": {func(t *testing.T, wait time.Duration) error {
			t.Helper()
			_, err := b.Await(t.Context(), latchkey.Wait(wait))
			assert.NotErrorIs(t, err, context.DeadlineExceeded)
			return err
		}, "has waited for too long"},
		"deadline": {func(t *testing.T, wait time.Duration) error {
			t.Helper()
			_, err := b.Await(within(t, wait))
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			return err
		}, "has waited for too long"},
		"cancel": {func(t *testing.T, _ time.Duration) error {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			ended := arriveInBackground(ctx, b)
			atBarrier(t, b, 3-1)
			cancel()
			err := rig.Await(t, soon, "who is canceled", ended).err
			assert.ErrorIs(t, err, context.Canceled)
			return err
		}, "has given up"},
	} {
		t.Run(what, func(t *testing.T) {
			for wait := 300 * time.Millisecond; ; wait *= 2 {
				waiting := arriveInBackground(within(t, 2*soon), other)
				who := atBarrier(t, b, 1).Who[0].Owner
				err := each.giveUp(t, wait)
				if errors.Is(err, latchkey.ErrUnavailable) && wait < soon { // the server has not answered in time
					require.NoError(t, b.Reset(t.Context()))
					requireBroken(t, rig.Await(t, soon, "the other", waiting).err, "")
					continue
				}
				requireBusy(t, err)
				assert.NotErrorIs(t, err, latchkey.ErrBroken)
				assert.NotErrorIs(t, err, latchkey.ErrUnknownOutcome)
				err = rig.Await(t, soon, "the other", waiting).err
				requireBroken(t, err, each.how)
				assert.NotContains(t, err.Error(), who.String(), "it was not this one")
				completes(t, b)
				return
			}
		})
	}
}

// A call whose context has ended does not arrive.
func TestBarrierEndedContext(t *testing.T) {
	b := connect(t, rig.Shared()).NewBarrier(rig.Name(t), 2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.Await(ctx)
	onlyTheContexts(ctx, t, err, "Await")
	s, err := b.State(t.Context())
	require.NoError(t, err)
	assert.Zero(t, s)
}

// If the generation is complete, a party goes on like the others even if its context ends before it
// learns this.
func TestBarrierCompleteWhenAPartyGivesUp(t *testing.T) {
	server := rig.Shared()
	tap := rig.NewTap(t, server)
	b := connect(t, server, onlyMessages).NewBarrier(rig.Name(t), 2)
	deaf := connectVia(t, server, tap.Addr(), onlyMessages).NewBarrier(b.Name(), 2)
	tap.DropMessages(true)
	ctx, cancel := context.WithCancel(t.Context())
	waiting := arriveInBackground(ctx, deaf)
	atBarrier(t, b, 1)
	quiet(t, tap)
	last, err := b.Await(within(t, soon))
	require.NoError(t, err)
	staysPending(t, waiting)
	cancel()
	a := rig.Await(t, soon, "the one that was canceled", waiting)
	require.NoError(t, a.err)
	assert.Equal(t, last.Generation, a.Generation)
	assert.Zero(t, a.Index)
	assert.True(t, last.Last())
}

// Reset wakes all parties and does not break a later generation.
func TestBarrierReset(t *testing.T) {
	server := rig.Shared()
	tap := rig.NewTap(t, server)
	b := connect(t, server, onlyMessages).NewBarrier(rig.Name(t), 20)
	require.NoError(t, b.Reset(t.Context()), "one that is not there")
	for range 2 {
		var all []<-chan arrival
		for range 19 {
			all = append(all, arriveInBackground(within(t, soon), b))
		}
		atBarrier(t, b, 19)
		require.NoError(t, b.Reset(t.Context()))
		for _, each := range all {
			requireBroken(t, rig.Await(t, soon, "a party", each).err, "it was reset")
		}
	}
	b = connect(t, server, onlyMessages).NewBarrier(b.Name(), 2)
	late := connectVia(t, server, tap.Addr(), persistent).NewBarrier(b.Name(), 2)
	held := tap.HoldNthCommand(2, rig.Both(rig.Mentions(b.Name()), rig.Named("EVALSHA", "EVAL"))) // after the query
	done := make(chan error, 1)
	go func() { done <- late.Reset(context.Background()) }()
	rig.Await(t, soon, "the reset at the tap", held.Arrived)
	waiting := arriveInBackground(within(t, soon), b)
	atBarrier(t, b, 1)
	_, err := b.Await(within(t, soon))
	require.NoError(t, err, "nobody has reset it yet")
	require.NoError(t, rig.Await(t, soon, "the first", waiting).err)
	held.Release()
	require.NoError(t, rig.Await(t, soon, "the late one", done))
	b = connect(t, server).NewBarrier(b.Name(), 3)
	completes(t, b)
}

// Close breaks the generations in which its client waits, and leaves no goroutine.
func TestBarrierClose(t *testing.T) {
	server := rig.Fresh(t)
	other := connect(t, server, onlyMessages).NewBarrier("phase", 12)
	waiting := arriveInBackground(within(t, soon), other)
	atBarrier(t, other, 1)
	awaitWaiter(t, rig.NewAdmin(t, server), "phase") // its connection for messages is open
	before := goleak.IgnoreCurrent()
	client, closeAll, err := dial(server, server.Addr(), latchkey.Options{})
	require.NoError(t, err)
	b := client.NewBarrier("phase", 12)
	var all []<-chan arrival
	for range 10 {
		all = append(all, arriveInBackground(context.Background(), b))
	}
	atBarrier(t, other, 11)
	require.NoError(t, closeAll(within(t, soon)))
	for _, each := range all {
		a := rig.Await(t, soon, "a party", each)
		if !errors.Is(a.err, latchkey.ErrClosed) {
			requireBroken(t, a.err, "was closed") // broken by another party that left before
		}
		assert.NotErrorIs(t, a.err, latchkey.ErrNotAcquired)
		assert.NotErrorIs(t, a.err, latchkey.ErrUnknownOutcome)
	}
	requireBroken(t, rig.Await(t, soon, "the other", waiting).err, "was closed")
	_, err = b.Await(t.Context())
	assert.ErrorIs(t, err, latchkey.ErrClosed)
	assert.ErrorIs(t, b.Reset(t.Context()), latchkey.ErrClosed)
	rig.Eventually(t, soon, "no goroutine is left", func() error { return leaked(server, before) })
}
