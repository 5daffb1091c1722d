package tests

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/tests/rig"
)

// Goroutines of a client that want to write pass the write hold on, as long as no goroutine of the
// client wants to read.

// heldForWriters returns a write hold that the server granted while n other goroutines were in
// line, and the channels with their results.
func (r *readers) heldForWriters(t *testing.T, n int) (hold *latchkey.Hold, others []<-chan acquisition) {
	t.Helper()
	before := mustLock(t, r.rw.Writer())
	_ = before.Owner() // so that it is not passed on
	for range n + 1 {
		others = append(others, lockInLine(within(t, soon), t, r.rw.Writer()))
	}
	mustUnlock(t, before)
	first := rig.Await(t, soon, "the first in line", others[0])
	require.NoError(t, first.err)
	r.tap.Forget()
	return first.hold, others[1:]
}

// A write hold is passed to the waiters in line, in their order.
func TestWritePassing(t *testing.T) {
	t.Parallel()
	r := newReaders(t, longTurn)
	hold, others := r.heldForWriters(t, 3)
	for _, other := range others {
		mustUnlock(t, hold)
		require.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrNotHeld)
		next := rig.Await(t, soon, "the next", other)
		require.NoError(t, next.err)
		assert.Equal(t, 1, next.hold.Count())
		hold = next.hold
	}
	require.Zero(t, r.sent())
	mustUnlock(t, hold)
	r.requireFree(t)
}

// Readers of the client go before its writers.
func TestWritePassing_lets_readers_go_first(t *testing.T) {
	t.Parallel()
	r := newReaders(t, longTurn)
	hold, others := r.heldForWriters(t, 1)
	reader := lockInBackground(within(t, soon), r.rw.Reader())
	parked(t, rig.NewAdmin(t, rig.Shared()), r.name)
	mustUnlock(t, hold)
	read := rig.Await(t, soon, "the reader", reader)
	require.NoError(t, read.err)
	require.Empty(t, others[0])
	mustUnlock(t, read.hold)
	next := rig.Await(t, soon, "the writer", others[0])
	require.NoError(t, next.err)
	mustUnlock(t, next.hold)
}

// With a negative turn, each write hold begins and ends on the server.
func TestWritePassing_can_be_switched_off(t *testing.T) {
	t.Parallel()
	r := newReaders(t, latchkey.Options{Turn: -1})
	hold, others := r.heldForWriters(t, 1)
	mustUnlock(t, hold)
	next := rig.Await(t, soon, "the next", others[0])
	require.NoError(t, next.err)
	require.NotZero(t, r.sent())
	mustUnlock(t, next.hold)
}

// Downgrade works for a hold that was passed on, and the waiters in line wait for the readers.
func TestWritePassing_and_downgrade(t *testing.T) {
	t.Parallel()
	r := newReaders(t, longTurn)
	hold, others := r.heldForWriters(t, 2)
	mustUnlock(t, hold)
	next := rig.Await(t, soon, "the next", others[0])
	require.NoError(t, next.err)
	read, err := next.hold.Downgrade(t.Context())
	require.NoError(t, err)
	require.Empty(t, others[1])
	mustUnlock(t, read)
	last := rig.Await(t, soon, "the last", others[1])
	require.NoError(t, last.err)
	mustUnlock(t, last.hold)
	r.requireFree(t)
}
