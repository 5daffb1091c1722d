package tests

import (
	"errors"
	"testing"
	"time"

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
	_ = before.Share() // so that it is not passed on
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
	for passed := false; !passed; {
		began := time.Now()
		hold, others := r.heldForWriters(t, 3)
		for _, other := range others {
			mustUnlock(t, hold)
			require.ErrorIs(t, hold.Unlock(t.Context()), latchkey.ErrNotHeld)
			next := rig.Await(t, soon, "the next", other)
			require.NoError(t, next.err)
			assert.Equal(t, 1, countOf(next.hold))
			hold = next.hold
		}
		passed = r.sent() == 0
		require.True(t, passed || time.Since(began) > longestTurn/2, "the turn lasts, and there was sent something")
		mustUnlock(t, hold)
	}
	r.requireFree(t)
}

// readersTurn is the time for which a release keeps the lock for readers that have waited.
const readersTurn = 100 * time.Millisecond

// Readers of the client go before its writers, if they come in time.
func TestWritePassing_lets_readers_go_first(t *testing.T) {
	t.Parallel()
	refused := make(chan struct{}, 100)
	options := longTurn
	options.Observer = func(e latchkey.Event) {
		if e.Type == latchkey.EventAttempt && errors.Is(e.Err, latchkey.ErrNotAcquired) {
			refused <- struct{}{}
		}
	}
	r := newReaders(t, options)
	for readerCameFirst := false; !readerCameFirst; {
		hold, writers := r.heldForWriters(t, 1)
		for len(refused) > 0 { // by the hold before
			<-refused
		}
		reader, writer := lockInBackground(within(t, soon), r.rw.Reader()), writers[0]
		rig.Await(t, soon, "the reader is refused", refused)
		began := time.Now()
		mustUnlock(t, hold)
		for range 2 {
			select {
			case read := <-reader:
				require.NoError(t, read.err)
				readerCameFirst = readerCameFirst || writer != nil
				mustUnlock(t, read.hold)
				reader = nil
			case written := <-writer:
				require.NoError(t, written.err)
				require.True(t, reader == nil || time.Since(began) > readersTurn, "a writer came before the reader")
				mustUnlock(t, written.hold)
				writer = nil
			}
		}
	}
}

// With a negative turn, each write hold begins and ends on the server.
func TestWritePassing_can_be_switched_off(t *testing.T) {
	t.Parallel()
	r := newReaders(t, latchkey.Options{Tuning: latchkey.Tuning{Turn: -1}})
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
