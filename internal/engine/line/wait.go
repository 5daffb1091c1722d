package line

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/transport/retry"
)

// Waiting is how the calls of a client wait.
type Waiting struct {
	Table   *Table
	Counts  *Counts
	Closing <-chan struct{}
	Trouble func(name string, err error) // logs that a call waits for the server to recover
}

// Attempter is what waits at the front of a line: an acquisition, or another call that waits
// for a change on the server.
type Attempter interface {
	// Attempt makes one attempt on the server. With ErrNotAcquired it returns the time after which
	// to try again if no message comes, negative if that is unknown.
	Attempt(ctx context.Context, round int) (left time.Duration, err error)
	// Pause prepares the pause after ErrNotAcquired, and returns how long it may last.
	Pause(q *Line, round int, left time.Duration) time.Duration
	// What returns the kind of the object, under which the call is counted while it waits, and its
	// name, for the log. With KindNone the call is not counted.
	What() (keyspace.Kind, string)
	// Recipient returns what receives the holds of this client for the call, or nil if there are
	// none for it.
	Recipient() Recipient
}

// Recipient is a call that waits for something that this client may hold. A hold of the client can
// be passed to it, and the place in the queue on the server goes from the front of a line to the
// next one. If it is in line, shard.mu is held while Wants and MayBeLetIn are called.
type Recipient interface {
	// Joined is called when the call has to wait in line. Other goroutines may know it from then
	// on.
	Joined()
	// Wants reports whether what could be passed is what it needs.
	Wants(from Held) bool
	// Receive takes a hold of that.
	Receive(hold Hold)
	// MayBeLetIn reports whether it need not make attempts of its own in a shared line, because
	// waiters before it may let it in.
	MayBeLetIn() bool
	// LetIn is called in front when it has acquired. It lets others in line in, if they may share
	// that.
	LetIn(q *Line)
	// Next makes the place with which it goes on after what is held, for the release to put into
	// the queue. It returns nil if it wants something else, or polls at times that the queue does
	// not know.
	Next(after Held) Place
	// TakeOver reports whether it goes on with the place of the front before it.
	TakeOver(left Place) bool
	// Leave returns the place with which the next in line can go on, or nil.
	Leave() Place
}

// Hold is a hold that is passed to a waiter in line.
type Hold interface {
	// Of returns what it is a hold of.
	Of() Held
}

// Place is a place in the queue on the server.
type Place interface {
	// GiveUp leaves the queue, because no call goes on with the place.
	GiveUp()
}

// GiveUp gives up a place that nobody goes on with. left may be nil.
func GiveUp(left Place) {
	if left != nil {
		left.GiveUp()
	}
}

// Earlier is the attempt of a call before it entered a shared line.
type Earlier struct {
	Err   error
	Hints Hints // taken before the attempt
}

// Wait waits in one of the lines of the key, and then in front of it, until the attempter has what
// it waits for. In a shared line, a hint lets all waiters try without leaving the line. before is
// an attempt that the call has made, or nil.
func (w *Waiting) Wait(ctx context.Context, key Key, l Side, a Attempter, before *Earlier) error {
	r := a.Recipient()
	q, in, left := w.Table.enter(key, l, r, before)
	var mark Mark
	defer mark.End()
	if in != nil {
		if r != nil {
			r.Joined()
		}
		mark.BeginFor(w.Counts, a)
		if at, err := w.inLine(ctx, q, in, a, before); at != atFront {
			if at == leftLine {
				GiveUp(q.takeLeft(false))
			}
			q.whole().Done()
			return err
		}
		left = q.takeLeft(true)
	}
	if left != nil && (r == nil || !r.TakeOver(left)) {
		left.GiveUp()
	}
	defer leaveFront(q, r)
	err := w.InFront(ctx, q, a, &mark)
	if err == nil {
		if r != nil {
			r.LetIn(q)
		}
		q.acquired()
	}
	return err
}

// leaveFront leaves the front and the line. The next in line may go on with the place that r
// leaves.
func leaveFront(q *Line, r Recipient) {
	var left Place
	if r != nil {
		left = r.Leave()
	}
	GiveUp(q.exit(left))
}

// inLine waits in line. It returns atFront, or how the wait has ended. before is as for Wait.
func (w *Waiting) inLine(ctx context.Context, q *Line, in *Waiter, a Attempter, before *Earlier) (result, error) {
	var last error
	if before != nil {
		last = before.Err
	}
	for {
		switch at, err := in.await(ctx, w.Closing); at {
		case received, atFront:
			return at, nil
		case leftLine:
			return leftLine, q.WaitError(ctx, err, last)
		}
		_, err := a.Attempt(ctx, 1)
		if err == nil || !WorthWaiting(ctx, err) {
			in.leave()
			return leftLine, q.WaitError(ctx, err, last)
		}
		last = err
	}
}

// InFront is the wait loop of the library. The front of a line tries to acquire, and then rests
// until a new attempt may succeed: after a message, the beginning or end of the subscription, a
// release inside this client, the end of the holder's lease, or the poll ceiling. The first refusal
// subscribes, and its confirmation starts another attempt, so that a release just before it is not
// missed. mark counts the call from its first rest on.
func (w *Waiting) InFront(ctx context.Context, q *Line, a Attempter, mark *Mark) error {
	for round := 0; ; round++ {
		if open := q.openLeft(); open > 0 && !endsWithin(ctx, open) { // a call that has less time asks at once
			if err := retry.Rest(ctx, w.Closing, open); err != nil {
				return q.WaitError(ctx, err, nil)
			}
		}
		q.drain()
		q.attemptBegins()
		left, err := a.Attempt(ctx, round)
		if !fault.IsContextEnd(err) {
			q.attemptAnswered(err)
		}
		if err == nil || !WorthWaiting(ctx, err) {
			return q.WaitError(ctx, err, nil)
		}
		pause := w.pause(q, a, round, left, err)
		mark.BeginFor(w.Counts, a)
		if err := retry.Delay(ctx, w.Closing, q.signals, pause); err != nil {
			return q.WaitError(ctx, err, nil)
		}
	}
}

// endsWithin reports whether a context has a deadline before d is over.
func endsWithin(ctx context.Context, d time.Duration) bool {
	deadline, has := ctx.Deadline()
	return has && time.Until(deadline) <= d
}

// pause returns how long to rest after a failure.
func (w *Waiting) pause(q *Line, a Attempter, round int, left time.Duration, err error) time.Duration {
	if errors.Is(err, fault.ErrNotAcquired) {
		return a.Pause(q, round, left)
	}
	_, name := a.What()
	w.Trouble(name, err)
	return retry.Jitter(retry.LongPause)
}
