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
// that it found ended, even if the next one has begun in the meantime.
//
// Every operation first reads the current round, and then changes that round or none: a command
// that is delivered late does not touch a later round. Every change counts once, however often it
// is sent. ErrUnknownOutcome means that a change was sent and got no answer in time. The client
// repeats it in the background until the server answers, so do not repeat it. After any other error
// nothing was changed.
//
// On the name of a semaphore, and on the name of a latch, closed or open, the operations of the other
// kind return ErrWrongKind. Nothing shows what a number is that Redisson made.
//
// The library understands rounds of Redisson, but Redisson does not number them: if it ends one
// round and begins another between two queries of this library, the two count as one. Redisson
// removes a latch that opens, so a process that comes late has to await it with [UnsetIsOpen].
type CountDownLatch struct{ inside latch.Latch }

// NewCountDownLatch returns the latch with that name. It sends nothing.
func (c *Client) NewCountDownLatch(name string) *CountDownLatch {
	return &CountDownLatch{latch.New(c.engine(), name)}
}

// Name returns the name as the program gave it.
func (l *CountDownLatch) Name() string { return l.inside.Name() }

// Client returns the client that made the object.
func (l *CountDownLatch) Client() *Client { return (*Client)(l.inside.Client.Handle) }

// TrySetCount begins a round: it closes the latch for n counts, from 1 to 2147483647, and reports
// whether it did. If the latch is already closed, TrySetCount changes nothing and returns false.
// With [TTL] the round ends when the time is over: calls of Await then get ErrGone.
//
// TrySetCount does not wait. While the server is in trouble, it retries for Options.RetryBudget.
// The error matches ErrUnavailable if the server could not be reached, and ErrUnknownOutcome as
// well if the change was sent and got no answer (the client then repeats it in the background: do
// not repeat it). It can also match ErrClosed, ErrWrongKind, or ErrInvalid for a bad n or TTL, or
// be a *rueidis.RedisError if the server refuses.
func (l *CountDownLatch) TrySetCount(ctx context.Context, n int, options ...SetOption) (bool, error) {
	return l.inside.TrySetCount(ctx, n, settingsOf(options))
}

// CountDown counts once, wakes waiting calls of Await if that was the last count, and returns the
// number of counts left. On an open latch it does nothing and returns 0. It works even if ctx has
// ended: its time is limited to twice Options.RetryBudget instead.
//
// Any process may count, as often as it likes; see [CountDownLatch.CountDownAs].
//
// The error matches ErrNotSet if nobody has set the latch, ErrGone if it has expired, or
// ErrUnavailable and ErrUnknownOutcome if the server could not be reached or did not answer. It can
// also match ErrClosed, ErrWrongKind or ErrInvalid, or be a *rueidis.RedisError if the server
// refuses.
//
// After ErrUnknownOutcome the client repeats the count in the background, for up to 20 minutes. It
// counts once: do not repeat it. If the server does not answer from the start of the call, so that
// the round is unknown, the count goes to the round that exists when the server answers again. After
// any other error nothing was counted.
func (l *CountDownLatch) CountDown(ctx context.Context) (left int, err error) {
	return l.inside.CountDown(ctx, 1, "")
}

// CountDownN counts n times at once, from 1 to 2147483647, or as often as counts are left, and
// returns the number of counts left. Otherwise it is like CountDown.
func (l *CountDownLatch) CountDownN(ctx context.Context, n int) (left int, err error) {
	return l.inside.CountDown(ctx, n, "")
}

// CountDownAs counts once in a round for a participant, even if several processes call it, or a
// restarted process repeats its work. The participant is a text of 1 to 512 bytes. If the
// participant has already counted, the call changes nothing and returns the number of counts left.
// Otherwise it is like CountDown.
func (l *CountDownLatch) CountDownAs(ctx context.Context, participant string) (left int, err error) {
	return l.inside.CountDownAs(ctx, participant)
}

// Count returns how many counts are left on the server, or 0 if the latch is open. The answer may
// be out of date when it arrives. The error matches ErrNotSet if nobody has set the latch, ErrGone
// if it has expired, ErrUnavailable if the server could not be reached, ErrClosed, ErrWrongKind,
// ErrInvalid, or is a *rueidis.RedisError if the server refuses.
func (l *CountDownLatch) Count(ctx context.Context) (int, error) { return l.inside.Count(ctx) }

// Inspect returns how many counts are left and when the round expires, as [Client.Inspect] does. A latch that is open,
// or that nobody has set, has the kind [KindNone]; Count tells these apart.
//
// The errors are those of Client.Inspect, and ErrWrongKind if the key is something else, which the Object then shows.
func (l *CountDownLatch) Inspect(ctx context.Context) (Object, error) {
	return asObject(l.inside.Inspect(ctx))
}

// Delete removes the latch, open or closed, and reports whether it existed. Calls of Await that
// wait for its round get ErrGone; later calls find no latch (ErrNotSet).
//
// Delete does not wait. While the server is in trouble, it retries for Options.RetryBudget. The
// error matches ErrUnavailable if the server could not be reached, and ErrUnknownOutcome as well if
// the deletion was sent and got no answer. It can also match ErrClosed, ErrWrongKind or ErrInvalid,
// or be a *rueidis.RedisError if the server refuses.
func (l *CountDownLatch) Delete(ctx context.Context) (bool, error) { return l.inside.Delete(ctx) }

// Await waits until the round that it finds opens, ctx ends, or the time of [Wait] is over. Without
// either limit it waits forever. It returns at once if the latch is open. If it finds no round,
// Await returns ErrNotSet or ErrGone; with [AwaitSet] it waits for the first round that begins, and
// with [UnsetIsOpen] it returns nil.
//
// A nil error means that the round has opened, however long ago. Otherwise the error matches one of
//
//   - ErrNotSet: nobody has set the count, or Redisson opened the latch before a client of this
//     library saw it closed; if Redisson counts, use [UnsetIsOpen]
//   - ErrGone: the round was deleted or expired before it opened, or the server has lost it
//   - ErrNotAcquired: the latch was closed until ctx ended or the time of Wait was over; with
//     AwaitSet, ErrNotSet matches too if nobody has set it
//   - ErrUnavailable: when the time was over, the server could not be reached or had not answered
//   - ErrClosed: the client is closed, or was closed during the call
//   - ErrWrongKind: the key holds something else
//   - ErrInvalid: the name or an option is unusable; nothing was sent
//   - *rueidis.RedisError: the server refuses for a reason that waiting does not change
//
// If ctx ended during the call, the error also matches that of ctx. The end of Wait matches no
// context error. If ctx had ended before the call, nothing was sent, and the error matches only
// that of ctx. Await leaves nothing behind on the server. Each Await costs the server one
// query when it begins and one when it ends. While they wait, all calls of a client together poll
// as often as one would.
func (l *CountDownLatch) Await(ctx context.Context, options ...AwaitOption) error {
	return l.inside.Await(ctx, settingsOf(options))
}
