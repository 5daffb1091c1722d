package latchkey

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
	"github.com/latchkey-go/latchkey/internal/engine/undo"
	"github.com/latchkey-go/latchkey/internal/transport"
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
type CountDownLatch struct {
	synchronizer

	state, done string // keys
}

// NewCountDownLatch returns the latch with that name. It sends nothing.
func (c *Client) NewCountDownLatch(name string) *CountDownLatch {
	o := newSynchronizer(c.engine, keyspace.KindLatch, name, c.engine.latchChannel)
	tag := keyspace.Tag(o.names.Key)
	return &CountDownLatch{synchronizer: o, state: keyspace.LatchKey(tag), done: "latchkey_latch_done:" + tag}
}

// latchChannel returns Redisson's channel. If the key has braces, that channel is in another slot,
// which sharded messages do not permit: the latch then has a channel of this library. Redisson
// itself cannot use such a key in a cluster.
func (c *engine) latchChannel(key string) string {
	if c.Publish == "SPUBLISH" && strings.Contains(key, "{") {
		return "latchkey_latch__channel:" + key
	}
	return "redisson_countdownlatch__channel__{" + key + "}"
}

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
	const verb = "try set count"
	ttl, err := timeToLive(options)
	if err = errors.Join(l.names.Invalid, err, request.CheckNumber("count %d", n, 1)); err != nil {
		return false, fault.Op(verb, l.names.Name, err)
	}
	v, err := l.now(ctx, verb)
	if err != nil || v.what == latchClosed {
		return false, err
	}
	return script.Bool(l.sendOrRepeat(ctx, verb, func(o *undo.Operation) script.Call {
		return script.NewCall(script.LatchSet, l.changeKeys(o), o.Number, v.round, strconv.Itoa(n), ttl, l.client.Publish, l.names.Channel)
	}))
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
	return l.countDown(ctx, 1, "")
}

// CountDownN counts n times at once, from 1 to 2147483647, or as often as counts are left, and
// returns the number of counts left. Otherwise it is like CountDown.
func (l *CountDownLatch) CountDownN(ctx context.Context, n int) (left int, err error) {
	return l.countDown(ctx, n, "")
}

// CountDownAs counts once in a round for a participant, even if several processes call it, or a
// restarted process repeats its work. The participant is a text of 1 to MaxNameLength bytes. If the
// participant has already counted, the call changes nothing and returns the number of counts left.
// Otherwise it is like CountDown.
func (l *CountDownLatch) CountDownAs(ctx context.Context, participant string) (left int, err error) {
	if n := len(participant); n == 0 || n > MaxNameLength || !utf8.ValidString(participant) {
		return 0, fault.Op("count down", l.names.Name, l.names.Invalid, fault.Invalid("%q cannot be the name of a participant", participant))
	}
	return l.countDown(ctx, 1, participant)
}

func (l *CountDownLatch) countDown(ctx context.Context, n int, participant string) (int, error) {
	const verb = "count down"
	if err := errors.Join(l.names.Invalid, request.CheckNumber("count %d", n, 1)); err != nil {
		return 0, fault.Op(verb, l.names.Name, err)
	}
	parent := l.client.Reporter.Parent(ctx)
	ctx = l.client.Sender.Detached(ctx)
	v, a, err := l.look(ctx, "", false)
	switch {
	case err != nil && (a.Doubt || mayStillRun(err)):
		// The server does not answer. The count must not be lost, so it goes to the round that
		// exists when the server answers again.
		l.sendLater(l.countIn("", n, participant))
		return 0, fault.Op(verb, l.names.Name, fault.ErrUnknownOutcome, err)
	case err != nil:
		return 0, fault.Op(verb, l.names.Name, l.explain(ctx, transport.Answer{}, err)...)
	case v.what != latchClosed:
		return 0, l.roundError(verb, v)
	}
	a, err = l.sendUntilDone(ctx, verb, l.countIn(v.round, n, participant))
	if err != nil {
		return 0, err
	}
	left, err := script.Int(a)
	switch {
	case left < 0:
		return 0, fault.Op(verb, l.names.Name, fault.ErrGone)
	case err == nil:
		l.client.Reporter.Observe(parent, report.Event{Type: report.CountedDown, Kind: l.kind, Name: l.names.Name, Count: left})
	}
	return left, err
}

// countIn returns a function that builds the command that counts in a round, or in the current
// round if round is "".
func (l *CountDownLatch) countIn(round string, n int, participant string) func(*undo.Operation) script.Call {
	return func(o *undo.Operation) script.Call {
		return script.NewCall(script.LatchCount, l.changeKeys(o),
			o.Number, round, strconv.Itoa(n), participant, l.client.Publish, l.names.Channel)
	}
}

// Count returns how many counts are left on the server, or 0 if the latch is open. The answer may
// be out of date when it arrives. The error matches ErrNotSet if nobody has set the latch, ErrGone
// if it has expired, ErrUnavailable if the server could not be reached, ErrClosed, ErrWrongKind,
// ErrInvalid, or is a *rueidis.RedisError if the server refuses.
func (l *CountDownLatch) Count(ctx context.Context) (int, error) {
	v, err := l.now(ctx, "count")
	if err != nil {
		return 0, err
	}
	return v.left, l.roundError("count", v)
}

// Delete removes the latch, open or closed, and reports whether it existed. Calls of Await that
// wait for its round get ErrGone; later calls find no latch (ErrNotSet).
//
// Delete does not wait. While the server is in trouble, it retries for Options.RetryBudget. The
// error matches ErrUnavailable if the server could not be reached, and ErrUnknownOutcome as well if
// the deletion was sent and got no answer. It can also match ErrClosed, ErrWrongKind or ErrInvalid,
// or be a *rueidis.RedisError if the server refuses.
func (l *CountDownLatch) Delete(ctx context.Context) (bool, error) {
	const verb = "delete"
	for {
		v, err := l.now(ctx, verb)
		if err != nil || v.what == latchUnset {
			return false, err
		}
		a, err := l.sendOrRepeat(ctx, verb, func(o *undo.Operation) script.Call {
			return script.NewCall(script.LatchDelete, l.changeKeys(o), o.Number, v.round, l.client.Publish, l.names.Channel)
		})
		if err != nil {
			return false, err
		}
		if n, err := script.Int(a); n >= 0 || err != nil {
			return n == 1, err
		}
	}
}

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
	const verb = "await"
	r, err := request.New(l.client.Config.Lease, true, settingsOf(options))
	if r.AwaitSet && r.UnsetIsOpen {
		err = fault.Invalid("AwaitSet and UnsetIsOpen cannot be used together")
	}
	if err = errors.Join(l.names.Invalid, err); err == nil {
		err = l.begin(ctx)
	}
	if err != nil {
		return l.notBegun(ctx, verb, 0, err)
	}
	defer l.client.Done()
	began, parent := time.Now(), l.client.Reporter.Parent(ctx)
	ctx, cancel := r.Bound(ctx)
	defer cancel()
	w := &awaiter{CountDownLatch: l, objectWait: objectWait{&l.synchronizer}, request: &r}
	if err = w.await(ctx); err != nil {
		err = fault.Op(verb, l.names.Name, script.Explain(l.client.wrongKind(ctx, l.names, l.kind, err))...)
	} else if w.outcome != nil {
		err = fault.Op(verb, l.names.Name, w.outcome)
	}
	l.observeCall(parent, report.Opened, 0, began, err)
	return err
}
