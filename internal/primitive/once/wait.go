package once

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/engine/acquire"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/report"
)

// waiter is a call of Do until it runs or has the result.
type waiter struct {
	*acquire.Acquisition

	success *success
}

// wait returns nil if the caller is to run, or a *success. Usually the work is done. So a call
// makes its first attempt at once, not in line.
func wait(ctx context.Context, a *acquire.Acquisition) error {
	w := &waiter{Acquisition: a}
	_, err := w.Attempt(ctx, 0)
	if err != nil && line.WorthWaiting(ctx, err) {
		c := a.Lock.Client
		err = acquire.WithOwnHold(c, a.Lock.Names.Key, c.Waiting.Wait(ctx, a.Lock.LineKey(), line.Only, w, nil))
	}
	if w.success == nil {
		return line.WithContextEnd(ctx, err)
	}
	w.report()
	return w.success
}

// report tells the observer that the call found the work done. The call has no other end.
func (w *waiter) report() {
	c := w.Lock.Client
	if w.Parent != nil {
		c.Reporter.Observe(w.Parent, report.Event{
			Type: report.Opened, Kind: keyspace.KindOnce, Name: w.Lock.Name(), Wait: c.Clock().Since(w.Began),
		})
	}
	w.Parent = nil
}

// Attempt implements [line.Attempter]. It succeeds when the caller is to run, or has the result.
func (w *waiter) Attempt(ctx context.Context, round int) (time.Duration, error) {
	left, err := w.Acquisition.Attempt(ctx, round)
	if errors.As(err, &w.success) {
		return 0, nil
	}
	return left, err
}

// Recipient implements [line.Attempter]. What a waiter receives is the result that the front of the
// line has got.
func (w *waiter) Recipient() line.Recipient { return w }

// LetIn implements [line.Recipient].
func (w *waiter) LetIn(q *line.Line) {
	if w.success == nil {
		return
	}
	for _, other := range q.TakeAll(w.success) {
		other.Pass(w.success)
	}
}

// Wants implements [line.Recipient]. The answer to a request from before the call may be out of
// date.
func (w *waiter) Wants(from line.Held) bool {
	s, is := from.(*success)
	return is && s.asked.Since(w.Began) >= 0
}

// Receive implements [line.Recipient].
func (w *waiter) Receive(hold line.Hold) { w.success = hold.(*success) }

// Of implements [line.Hold].
func (s *success) Of() line.Held { return s }
