package latchkey

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/async"
	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/pubsub"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/transport"
)

// attempter is what waits at the front of a wait queue: an acquisition, or another call that waits
// for a change on the server. It may also implement
//
//   - [recipient]: a hold of this client can be passed to it
//   - [companion]: when it has acquired, others in line may share that
//   - [successor]: when it leaves, the next in line goes on with its place in the queue on the server
//   - missedHint: it tried before it joined a shared line, and may have missed a hint
type attempter interface {
	// attempt makes one attempt on the server. With ErrNotAcquired it returns the time after which
	// to try again if no message comes, negative if that is unknown.
	attempt(ctx context.Context, round int) (left time.Duration, err error)
	// pause prepares the rest after ErrNotAcquired, and returns its longest duration.
	pause(q *waitQueue, round int, left time.Duration) time.Duration
	// what returns the kind of the object, under which the call is counted while it waits, and its
	// name, for the log. With KindNone the call is not counted.
	what() (keyspace.Kind, string)
}

// wait waits in one of the lines of the key, and then in front of it, until the attempter has what
// it waits for. In a shared line, a hint lets all waiters try without leaving the line. last is
// the error of an earlier attempt, or nil.
func (c *Client) wait(ctx context.Context, key lineKey, l lineKind, a attempter, last error) error {
	q, w, left := c.waitQueues.enter(key, l, a)
	if call, is := a.(*acquisition); is {
		call.wasInLine = w != nil
	}
	var mark waitMark
	defer mark.end()
	if w != nil {
		mark.beginFor(c, a)
		if at, err := c.waitInLine(ctx, q, w, a, last); at != atFront {
			if at == leftLine {
				abandonLeft(q.takeLeft(false))
			}
			q.whole().done()
			return c.withOwnHold(key.key, err)
		}
		left = q.takeLeft(true)
	}
	takeOver(left, a)
	defer exit(q, a)
	err := c.waitInFront(ctx, q, a, &mark)
	if err == nil {
		letIn(q, a)
		q.wakeAll()
	}
	return c.withOwnHold(key.key, err)
}

// waitInLine waits in line. It returns atFront, or how the wait has ended. last is as for wait. A
// waiter that tried before it entered a shared line tries once more if it has missed a hint,
// since the waiter in front may wait for something else.
func (c *Client) waitInLine(ctx context.Context, q *waitQueue, w *waiter, a attempter, last error) (waitResult, error) {
	if m, is := a.(interface{ missedHint(q *waitQueue) bool }); is && m.missedHint(q.whole()) {
		async.Signal(w.wake)
	}
	for {
		switch at, err := q.await(ctx, c.closing, w); at {
		case received, atFront:
			return at, nil
		case leftLine:
			return leftLine, q.waitError(ctx, err, last)
		}
		_, err := a.attempt(ctx, 1)
		if err == nil || !worthWaiting(ctx, err) {
			q.leave(w)
			return leftLine, q.waitError(ctx, err, last)
		}
		last = err
	}
}

// waitInFront is the wait loop of the library. The front of a wait queue tries to acquire, and then rests
// until a new attempt may succeed: after a message, the beginning or end of the subscription, a
// release inside this client, the end of the holder's lease, or the poll ceiling. The first refusal
// subscribes, and its confirmation starts another attempt, so that a release just before it is not
// missed. mark counts the call from its first rest on.
func (c *Client) waitInFront(ctx context.Context, q *waitQueue, a attempter, mark *waitMark) error {
	for round := 0; ; round++ {
		if open := q.openLeft(); open > 0 && !endsWithin(ctx, open) { // a call that has less time asks at once
			if err := transport.Rest(ctx, c.closing, open); err != nil {
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
		pause := c.pause(q, a, round, left, err)
		mark.beginFor(c, a)
		if err := transport.Delay(ctx, c.closing, q.signals, pause); err != nil {
			return q.waitError(ctx, err, nil)
		}
	}
}

// endsWithin reports whether a context has a deadline before d is over.
func endsWithin(ctx context.Context, d time.Duration) bool {
	deadline, has := ctx.Deadline()
	return has && time.Until(deadline) <= d
}

// beginFor counts the call of an attempter.
func (m *waitMark) beginFor(c *Client, a attempter) {
	kind, _ := a.what()
	m.begin(c, kind)
}

// pause returns how long to rest after a failure.
func (c *Client) pause(q *waitQueue, a attempter, round int, left time.Duration, err error) time.Duration {
	if errors.Is(err, fault.ErrNotAcquired) {
		return a.pause(q, round, left)
	}
	_, name := a.what()
	trouble := report.NoticeTrouble
	if transport.Classify(err) == transport.TryLater {
		trouble = report.NoticeBusyServer
	}
	c.reporter.Log(trouble, name, slog.Any("error", err))
	return transport.Jitter(transport.LongPause)
}

func (a *acquisition) what() (keyspace.Kind, string) { return a.lock.spec.kind, a.lock.Name() }

// pause relies on messages, and tries as often as the kind of lock requires. A spin lock polls, and does not rely
// on messages.
func (a *acquisition) pause(q *waitQueue, round int, left time.Duration) time.Duration {
	c, s := a.lock.client, a.lock.spec
	a.reportNoExpiry(left)
	switch {
	case s.backoff != nil && a.pollIn > 0:
		return a.pollIn
	case s.backoff != nil:
		return s.backoff(round)
	}
	a.reportOwnWait()
	a.reportBehindOwnReader()
	a.showWaiting()
	pause := c.pollPause()
	if s.ceiling != nil {
		pause = min(pause, s.ceiling(c))
	}
	if a.pollIn > 0 {
		pause = min(pause, a.pollIn)
	}
	if a.awaitsGrant(round) && a.pollIn == 0 && !q.strangersMayLeaveLast() {
		q.noteAwaitsGrant()
		return pauseUntil(left, min(pause, longestEntryPause))
	}
	if s.passes {
		q.whole().takeTurns()
	}
	switch {
	case s.line != onlyLine:
		q.subscribe(c.notifier, a.lock.names.Channel, presenceChannel(a.lock.names.Key))
		if s.side == keyspace.KindRead && q.mustPoll(round) {
			pause = min(pause, pauseOfPoller(c.clock().Since(a.since)))
		}
	case s.passes:
		q.relyFor(pause + pubsub.SubscriptionLinger) // before it is subscribed: a subscription that is relied on does not retire
		fallthrough
	default:
		q.subscribe(c.notifier, a.lock.names.Channel)
	}
	if s.recipe { // other libraries publish nothing when they release it
		pause = min(pause, transport.Jitter(recipeSlow))
	}
	switch {
	case s.recipe && a.byStranger:
		pause = min(pause, q.recipeHolds(a.holder))
	case a.byStranger && s.passes:
		q.whole().strangerHolds(!a.stranger)
		a.stranger = true
	}
	return pauseUntil(left, pause)
}

// showWaiting makes the waiter visible to others, and finds out who holds the lock, for the error
// of the wait.
func (a *acquisition) showWaiting() {
	c := a.lock.client
	c.record.use(c.clock().Mono, c.options.StaleWaiterTimeout)
	if a.holder != "" {
		c.labels.fetch(a.holder)
	}
}

// reportNoExpiry logs a lock without an expiry, which a refusal shows by its remaining time.
func (a *acquisition) reportNoExpiry(left time.Duration) {
	if left < 0 && a.lock.spec.isLock() {
		a.lock.client.reporter.Log(report.NoticeNoExpiry, a.lock.names.Key)
	}
}
