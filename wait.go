package latchkey

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// waiting is how the calls of a client wait.
type waiting struct {
	queues  *waitQueues
	counts  waitCounts
	closing <-chan struct{}
	trouble func(name string, err error) // logs that a call waits for the server to recover
}

// attempter is what waits at the front of a wait queue: an acquisition, or another call that waits
// for a change on the server.
type attempter interface {
	// attempt makes one attempt on the server. With ErrNotAcquired it returns the time after which
	// to try again if no message comes, negative if that is unknown.
	attempt(ctx context.Context, round int) (left time.Duration, err error)
	// pause prepares the rest after ErrNotAcquired, and returns its longest duration.
	pause(q *waitQueue, round int, left time.Duration) time.Duration
	// what returns the kind of the object, under which the call is counted while it waits, and its
	// name, for the log. With KindNone the call is not counted.
	what() (keyspace.Kind, string)
	// recipient returns what receives the holds of this client for the call, or nil if there are none for it.
	recipient() recipient
}

// recipient is a call that waits for something that this client may hold. A hold of the client can be passed to it, and
// the place in the queue on the server goes from the front of a line to the next one. If it is in line, shard.mu is held
// while wants and mayBeLetIn are called.
type recipient interface {
	// joined is called when the call has to wait in line. Other goroutines may know it from then on.
	joined()
	// wants reports whether what could be passed is what it needs.
	wants(from lineHeld) bool
	// receive takes a hold of that.
	receive(hold lineHold)
	// mayBeLetIn reports whether it need not make attempts of its own in a shared line, because
	// waiters before it may let it in.
	mayBeLetIn() bool
	// letIn is called in front when it has acquired. It lets others in line in, if they may share that.
	letIn(q *waitQueue)
	// takeOver reports whether it goes on with the place of the front before it.
	takeOver(left linePlace) bool
	// leave returns the place with which the next in line can go on, or nil.
	leave() linePlace
}

// lineHold is a hold that is passed to a waiter in line.
type lineHold interface {
	// of returns what it is a hold of.
	of() lineHeld
}

// linePlace is a place in the queue on the server.
type linePlace interface {
	// giveUp leaves the queue, because no call goes on with the place.
	giveUp()
}

// giveUp gives up a place that nobody goes on with. left may be nil.
func giveUp(left linePlace) {
	if left != nil {
		left.giveUp()
	}
}

// earlier is the attempt of a call before it entered a shared line.
type earlier struct {
	err  error
	mark hintMark // taken before the attempt
}

// wait waits in one of the lines of the key, and then in front of it, until the attempter has what
// it waits for. In a shared line, a hint lets all waiters try without leaving the line. before is
// an attempt that the call has made, or nil.
func (w *waiting) wait(ctx context.Context, key lineKey, l lineKind, a attempter, before *earlier) error {
	r := a.recipient()
	q, in, left := w.queues.enter(key, l, r)
	var mark waitMark
	defer mark.end()
	if in != nil {
		if r != nil {
			r.joined()
		}
		mark.beginFor(w.counts, a)
		if at, err := w.inLine(ctx, q, in, a, before); at != atFront {
			if at == leftLine {
				giveUp(q.takeLeft(false))
			}
			q.whole().done()
			return err
		}
		left = q.takeLeft(true)
	}
	if left != nil && (r == nil || !r.takeOver(left)) {
		left.giveUp()
	}
	defer leaveFront(q, r)
	err := w.inFront(ctx, q, a, &mark)
	if err == nil {
		if r != nil {
			r.letIn(q)
		}
		q.wakeAll()
	}
	return err
}

// leaveFront leaves the front and the wait queue. The next in line may go on with the place that r leaves.
func leaveFront(q *waitQueue, r recipient) {
	var left linePlace
	if r != nil {
		left = r.leave()
	}
	giveUp(q.exit(left))
}

// inLine waits in line. It returns atFront, or how the wait has ended. before is as for wait. A
// waiter that tried before it entered a shared line tries once more if it has missed a hint,
// since the waiter in front may wait for something else.
func (w *waiting) inLine(ctx context.Context, q *waitQueue, in *waiter, a attempter, before *earlier) (waitResult, error) {
	var last error
	if before != nil {
		last = before.err
		if before.mark.missedHint(q.whole()) {
			async.Signal(in.wake)
		}
	}
	for {
		switch at, err := in.await(ctx, w.closing); at {
		case received, atFront:
			return at, nil
		case leftLine:
			return leftLine, q.waitError(ctx, err, last)
		}
		_, err := a.attempt(ctx, 1)
		if err == nil || !worthWaiting(ctx, err) {
			in.leave()
			return leftLine, q.waitError(ctx, err, last)
		}
		last = err
	}
}

// inFront is the wait loop of the library. The front of a wait queue tries to acquire, and then rests
// until a new attempt may succeed: after a message, the beginning or end of the subscription, a
// release inside this client, the end of the holder's lease, or the poll ceiling. The first refusal
// subscribes, and its confirmation starts another attempt, so that a release just before it is not
// missed. mark counts the call from its first rest on.
func (w *waiting) inFront(ctx context.Context, q *waitQueue, a attempter, mark *waitMark) error {
	for round := 0; ; round++ {
		if open := q.openLeft(); open > 0 && !endsWithin(ctx, open) { // a call that has less time asks at once
			if err := transport.Rest(ctx, w.closing, open); err != nil {
				return q.waitError(ctx, err, nil)
			}
		}
		q.drain()
		q.attemptBegins()
		left, err := a.attempt(ctx, round)
		if !fault.IsContextEnd(err) {
			q.attemptAnswered(err)
		}
		if err == nil || !worthWaiting(ctx, err) {
			return q.waitError(ctx, err, nil)
		}
		pause := w.pause(q, a, round, left, err)
		mark.beginFor(w.counts, a)
		if err := transport.Delay(ctx, w.closing, q.signals, pause); err != nil {
			return q.waitError(ctx, err, nil)
		}
	}
}

// endsWithin reports whether a context has a deadline before d is over.
func endsWithin(ctx context.Context, d time.Duration) bool {
	deadline, has := ctx.Deadline()
	return has && time.Until(deadline) <= d
}

// pause returns how long to rest after a failure.
func (w *waiting) pause(q *waitQueue, a attempter, round int, left time.Duration, err error) time.Duration {
	if errors.Is(err, fault.ErrNotAcquired) {
		return a.pause(q, round, left)
	}
	_, name := a.what()
	w.trouble(name, err)
	return transport.Jitter(transport.LongPause)
}
