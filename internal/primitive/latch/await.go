package latch

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
	"github.com/latchkey-go/latchkey/internal/base/keyspace"
	"github.com/latchkey-go/latchkey/internal/base/request"
	"github.com/latchkey-go/latchkey/internal/engine/line"
	"github.com/latchkey-go/latchkey/internal/engine/object"
	"github.com/latchkey-go/latchkey/internal/engine/report"
	"github.com/latchkey-go/latchkey/internal/engine/script"
)

// Awaiter is one Await.
type Awaiter struct {
	*Latch
	object.Wait

	request   *request.Request
	round     string // the awaited round, once it is known
	following bool   // the awaited round is the one after round
	outcome   error  // why the round did not open, once that is known
	shut      error  // why it waits, since the last answer
}

// Await waits until the round that it finds opens.
func (l *Latch) Await(ctx context.Context, settings []request.Setting) error {
	const verb = "await"
	r, err := request.New(l.Client.Config.Lease, 0, true, settings)
	if r.AwaitSet && r.UnsetIsOpen {
		err = fault.Invalid("AwaitSet and UnsetIsOpen cannot be used together")
	}
	if err = errors.Join(l.Names.Invalid, err); err == nil {
		err = l.Begin(ctx)
	}
	if err != nil {
		return l.NotBegun(ctx, verb, 0, err)
	}
	defer l.Client.Done()
	began, parent := time.Now(), l.Client.Reporter.Parent(ctx)
	ctx, cancel := r.Bound(ctx)
	defer cancel()
	w := &Awaiter{Latch: l, Wait: object.Wait{Of: &l.Object}, request: &r}
	if err = w.wait(ctx); err != nil {
		err = fault.Op(verb, l.Names.Name, script.Explain(l.Client.Inspector.WrongKind(ctx, l.Names, l.Kind, err))...)
	} else if w.outcome != nil {
		err = fault.Op(verb, l.Names.Name, w.outcome)
	}
	l.ObserveCall(parent, report.Opened, 0, began, err)
	return err
}

// wait returns nil when the outcome is known. The awaiters of this client wait in one line, and
// only its front waits for the server. At a hint, or when the front knows its outcome, those behind
// it query the server too, all at once and without leaving the line: each awaits a round of its
// own.
func (w *Awaiter) wait(ctx context.Context) error {
	key := line.Key{Kind: keyspace.KindLatch, Key: w.Names.Key}
	mark := w.Client.Lines.Hints(key)
	_, last := w.Attempt(ctx, 0)
	if last == nil || !w.request.Waits || !line.WorthWaiting(ctx, last) {
		return line.WithContextEnd(ctx, last)
	}
	err := w.Client.Waiting.Wait(ctx, key, line.Shared, w, &line.Earlier{Err: last, Hints: mark})
	if errors.Is(err, fault.ErrNotAcquired) && !errors.As(err, new(*fault.WaitError)) {
		// the front got what it waited for
		err = errors.Join(cmp.Or(w.shut, fault.ErrNotAcquired), fault.ContextEnd(err))
	}
	return err
}

// Attempt implements [line.Attempter]. It looks up the round that it found first.
func (w *Awaiter) Attempt(ctx context.Context, _ int) (time.Duration, error) {
	v, _, err := w.Look(ctx, w.round, w.following)
	if err != nil {
		return -1, err
	}
	switch {
	case v.What == Closed:
		w.round, w.following = v.Round, false
		w.shut = fault.NotYet("not open, %d left", v.Left)
		return v.Ends, w.shut
	case v.What == Open, w.request.UnsetIsOpen:
		return 0, nil
	case v.What != Gone && w.request.AwaitSet && w.request.Waits:
		w.round, w.following = v.Round, true
		w.shut = fault.ErrNotSetYet
		return -1, w.shut
	case v.What == latchUnset:
		w.outcome = fault.ErrNoCount
	default:
		w.outcome = fault.ErrGone
	}
	return 0, nil
}
