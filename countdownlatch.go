package latchkey

import (
	"context"

	"github.com/latchkey-go/latchkey/internal/primitive/latch"
)

// CountDownLatch lets any number of goroutines, in any number of processes, wait until something
// has happened a number of times. On the wire it is Redisson's RCountDownLatch.
//
// A latch is used in rounds. TrySetCount begins a round: the latch is closed. CountDown counts
// down. At zero the latch opens and the round is over: waiting calls of Await return, and later
// calls return at once, until TrySetCount begins the next round. An Await reports how the round
// that it found ended.
//
// A command that is delivered late does not touch a later round. Every change counts once, however
// often it is sent: after ErrUnknownOutcome the client repeats it in the background, so do not
// repeat it. After any other error nothing was changed. On the name of a semaphore the operations
// return ErrWrongKind, unless Redisson made it.
//
// Redisson does not number its rounds: if it ends one and begins another between two queries of
// this library, the two count as one. It removes a latch that opens, so a process that comes late
// has to await it with [UnsetIsOpen].
type CountDownLatch struct{ inside latch.Latch }

// NewCountDownLatch returns the latch with that name. It sends nothing.
func (c *Client) NewCountDownLatch(name string) *CountDownLatch {
	return &CountDownLatch{latch.New(c.engine(), name)}
}

// Name returns the name as the program gave it.
func (l *CountDownLatch) Name() string { return l.inside.Name() }

// TrySetCount begins a round: it closes the latch for n counts, from 1 to 2147483647, and reports
// whether it did. A latch that is already closed does not change. With [TTL] the round ends when
// the time is over: calls of Await then get ErrGone.
//
// While the server is in trouble, TrySetCount retries for Options.RetryBudget. The error matches
// ErrUnavailable if the server could not be reached, and ErrUnknownOutcome as well if the change
// was sent and got no answer. It can also match ErrClosed, ErrWrongKind, or ErrInvalid for a bad n
// or TTL, or be a *rueidis.RedisError.
func (l *CountDownLatch) TrySetCount(ctx context.Context, n int, options ...SetOption) (bool, error) {
	return l.inside.TrySetCount(ctx, n, settingsOf(options))
}

// CountDown counts once, wakes waiting calls of Await if that was the last count, and returns the
// number of counts left. On an open latch it does nothing and returns 0. Any process may count, as
// often as it likes. It works even if ctx has ended: twice Options.RetryBudget bounds it instead.
//
// The errors are those of TrySetCount, and ErrNotSet if nobody has set the latch, or ErrGone if it
// has expired. After ErrUnknownOutcome the client repeats the count for up to 20 minutes. If the
// server does not answer from the start of the call, the count goes to the round that exists when
// it answers again.
func (l *CountDownLatch) CountDown(ctx context.Context) (left int, err error) {
	return l.inside.CountDown(ctx, 1, "")
}

// CountDownN is CountDown for n counts at once, from 1 to 2147483647, or for as many as are left.
func (l *CountDownLatch) CountDownN(ctx context.Context, n int) (left int, err error) {
	return l.inside.CountDown(ctx, n, "")
}

// CountDownAs is CountDown that counts once in a round for a participant, a text of 1 to 512 bytes,
// even if several processes call it, or a restarted process repeats its work. If the participant
// has already counted, the call changes nothing.
func (l *CountDownLatch) CountDownAs(ctx context.Context, participant string) (left int, err error) {
	return l.inside.CountDownAs(ctx, participant)
}

// Count returns how many counts are left on the server, or 0 if the latch is open. The answer may
// be out of date when it arrives. The errors are those of [Lock.Inspect], ErrNotSet if nobody has
// set the latch, and ErrGone if it has expired.
func (l *CountDownLatch) Count(ctx context.Context) (int, error) { return l.inside.Count(ctx) }

// Inspect returns how many counts are left and when the round expires. A latch that is open, or
// that nobody has set, has the kind [KindNone]; Count tells these apart. The errors are those of
// [Lock.Inspect].
func (l *CountDownLatch) Inspect(ctx context.Context) (Object, error) {
	return asObject(l.inside.Inspect(ctx))
}

// Delete removes the latch, open or closed, and reports whether it existed. Calls of Await that
// wait for its round get ErrGone; later calls find no latch (ErrNotSet). The errors are those of
// TrySetCount.
func (l *CountDownLatch) Delete(ctx context.Context) (bool, error) { return l.inside.Delete(ctx) }

// Await waits until the round that it finds opens, ctx ends, or the time of [Wait] is over. Without
// either limit it waits forever. It returns at once if the latch is open. If it finds no round,
// Await returns ErrNotSet or ErrGone; with [AwaitSet] it waits for the first round that begins, and
// with [UnsetIsOpen] it returns nil. It leaves nothing behind on the server.
//
// A nil error means that the round has opened, however long ago. Otherwise the error matches one of
//
//   - ErrNotSet: nobody has set the count, or Redisson opened the latch before a client of this
//     library saw it closed
//   - ErrGone: the round was deleted or expired before it opened, or the server has lost it
//   - ErrNotAcquired: the latch was closed until the end of the wait; with AwaitSet, ErrNotSet
//     matches too if nobody has set it
//   - ErrUnavailable, ErrClosed, ErrWrongKind, ErrInvalid, *rueidis.RedisError: as for [Lock.Lock]
//
// If ctx ends, the error matches that of ctx as for [Lock.Lock].
func (l *CountDownLatch) Await(ctx context.Context, options ...AwaitOption) error {
	return l.inside.Await(ctx, settingsOf(options))
}
